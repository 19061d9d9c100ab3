package wallet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Options say for which network a wallet signs, and what it needs of the node.
type Options struct {
	Network block.Hash // id of the network
	Org     string     // organization of all users of the wallet
	// ValidFor is for how many heights beyond the current one a transaction may
	// still be ordered: the validity window of the network or less.
	ValidFor uint64

	// Height returns the last block that the node has processed.
	Height func() block.Height
	// Submit hands a signed transaction to the network and waits for its
	// receipt. A *pgerr.Error is a refusal; any other error is a fault or the
	// end of ctx.
	Submit func(ctx context.Context, tx *block.Tx) (*chain.Receipt, error)
	// Preview executes a signed transaction on the snapshot that it names and
	// returns what it would give. Nil in the order-then-execute flow.
	Preview func(ctx context.Context, tx *block.Tx) (*chain.Receipt, error)
	// Users returns the users of all organizations as of the last processed
	// block, revoked ones too.
	Users func() ([]chain.User, error)
	// Try executes definitions on the state as of now for their future owner and
	// forgets what they did: its error is the one that deploying them would end
	// with. Nil deploys without trying.
	Try func(owner identity.UserID, ddl string) error

	// Clock is the signed time, Unix microseconds; the system clock if nil.
	Clock func() int64
	// Random makes nonces; crypto/rand if nil.
	Random io.Reader
}

// EnsureDefaults fills in what is not set.
func (o *Options) EnsureDefaults() {
	if o.Clock == nil {
		o.Clock = func() int64 { return time.Now().UnixMicro() }
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
}

// Validate reports why a wallet cannot work like this.
func (o *Options) Validate() error {
	if err := identity.ValidateName(o.Org); err != nil {
		return fmt.Errorf("wallet: organization: %w", err)
	}
	if o.Height == nil || o.Submit == nil || o.Users == nil {
		return errors.New("wallet: Height, Submit and Users are needed")
	}
	return nil
}

// Wallet holds the keys of users of one organization.
type Wallet struct {
	opts Options

	mu   sync.RWMutex
	keys map[string]*identity.Signer // by name of the user
}

// New makes a wallet without keys.
func New(opts Options) (*Wallet, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	return &Wallet{opts: opts, keys: map[string]*identity.Signer{}}, nil
}

// Add gives the wallet the key of a user, in place of an earlier one.
func (w *Wallet) Add(user string, key *identity.Signer) error {
	if err := identity.ValidateName(user); err != nil {
		return fmt.Errorf("wallet: user %q: %w", user, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[user] = key
	return nil
}

// Has reports whether the wallet can sign for a user.
func (w *Wallet) Has(user string) bool { return w.key(user) != nil }

func (w *Wallet) key(user string) *identity.Signer {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.keys[user]
}

// Sign makes a transaction of a call, to be ordered within ValidFor blocks.
func (w *Wallet) Sign(user string, call block.Call) (*block.Tx, error) {
	return w.sign(user, call, nil)
}

// make makes a transaction of a call, not signed yet; change, if not nil, has the
// last word.
func (w *Wallet) make(user string, call block.Call, change func(*block.Tx)) (*block.Tx, error) {
	height := w.opts.Height()
	tx := &block.Tx{
		Network:    w.opts.Network,
		User:       identity.UserID{Org: w.opts.Org, Name: user},
		Call:       call,
		Snapshot:   height,
		Time:       w.opts.Clock(),
		ValidUntil: height + w.opts.ValidFor,
	}
	if _, err := io.ReadFull(w.opts.Random, tx.Nonce[:]); err != nil {
		return nil, fmt.Errorf("wallet: making a nonce: %w", err)
	}
	if change != nil {
		change(tx)
	}
	return tx, nil
}

// sign makes a transaction of a call and signs it with the user's key.
func (w *Wallet) sign(user string, call block.Call, change func(*block.Tx)) (*block.Tx, error) {
	key := w.key(user)
	if key == nil {
		return nil, pgerr.New(pgerr.InvalidAuthorizationSpec, "the signing endpoint has no key of user \"%s\"", user)
	}
	tx, err := w.make(user, call, change)
	if err != nil {
		return nil, err
	}
	if err := tx.Sign(key); err != nil {
		return nil, unsignable(tx, err)
	}
	return tx, nil
}

// unsignable explains why a call has no encoding: names and types come from the
// catalog, so it can only be too large.
func unsignable(tx *block.Tx, err error) error {
	size := len(tx.Encode())
	if size <= block.MaxTxBytes {
		return fmt.Errorf("wallet: signing: %w", err)
	}
	return pgerr.New(pgerr.ProgramLimitExceeded, "the call is too large for a transaction").
		WithDetail("It would have %d bytes; a transaction has %d at most.", size, block.MaxTxBytes)
}
