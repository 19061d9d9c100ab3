package chain

import (
	"errors"
	"log/slog"
	"runtime"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
)

// Options say what a chain works on.
type Options struct {
	// Store is the state: empty, or left by a chain over the same blocks.
	Store *mvcc.Store
	// Blocks is the log. Its block 0 defines the network.
	Blocks *blockstore.Store
	// Engine executes over Store, System are its system contracts.
	Engine *sql.Engine
	System *system.System

	// Workers is the number of goroutines that verify and execute; GOMAXPROCS
	// if 0. It influences nothing but speed.
	Workers int
	// CachedKeys bounds the cache of expanded public keys;
	// identity.DefaultCachedKeys if 0.
	CachedKeys int
	// SpeculativeTxs and SpeculativeBytes bound what is kept of transactions that
	// were executed ahead of their block; 20,000 and 256 MB if 0.
	SpeculativeTxs   int
	SpeculativeBytes int64
	// Logger receives what people should know; slog.Default if nil.
	Logger *slog.Logger
}

// EnsureDefaults fills in what is not set.
func (o *Options) EnsureDefaults() {
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.SpeculativeTxs == 0 {
		o.SpeculativeTxs = 20_000
	}
	if o.SpeculativeBytes == 0 {
		o.SpeculativeBytes = 256 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// Validate reports why a chain cannot work like this.
func (o *Options) Validate() error {
	switch {
	case o.Store == nil || o.Blocks == nil || o.Engine == nil || o.System == nil:
		return errors.New("chain: store, blocks, engine and system contracts are needed")
	case o.Workers < 1:
		return errors.New("chain: the number of workers is negative")
	case o.SpeculativeTxs < 0 || o.SpeculativeBytes < 0:
		return errors.New("chain: a bound of speculation is negative")
	}
	return nil
}
