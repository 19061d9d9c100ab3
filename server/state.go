package server

import (
	"errors"
	"log/slog"
	"time"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgcatalog"
)

// state is the row versions of a chain with the engine that works on them.
type state struct {
	store  *mvcc.Store
	engine *sql.Engine
	// private is schema private in a store of its own; nil where a chain is only
	// replayed.
	private *privateStore
	system  *system.System
	// chain is nil until the chain was opened. The engine asks it for the times
	// of blocks, which sessions do only afterwards.
	chain *chain.Chain
	log   *slog.Logger
}

// openState opens the store in dir and makes an engine over it.
func openState(dir string, private *privateStore, log *slog.Logger) (*state, error) {
	store, err := mvcc.Open(dir, mvcc.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	return newState(store, private, log), nil
}

// newState makes an engine over a store.
func newState(store *mvcc.Store, private *privateStore, log *slog.Logger) *state {
	s := &state{store: store, private: private, log: log}
	functions := contracts.NewFunctions()
	functions.Virtual = pgcatalog.Find
	s.engine = sql.NewEngine(store, functions.Exec(), sql.EngineOptions{
		BlockTime:        s.blockTime,
		StartTime:        timestampTZ(time.Now()),
		Clock:            func() int64 { return timestampTZ(time.Now()) },
		ValidateFunction: contracts.ValidateFunction,
		Private:          private.schema(),
		Halted:           s.halted,
	})
	s.system = system.New(s.engine, contracts.Inspect)
	return s
}

// chainOptions are the options of a chain over this state.
func (s *state) chainOptions(blocks *blockstore.Store, workers int) chain.Options {
	return chain.Options{Store: s.store, Blocks: blocks, Engine: s.engine, System: s.system, Workers: workers, Logger: s.log}
}

// openChain opens the chain and executes the blocks that the state lacks. Blocks
// that are appended afterwards have to be made by the orderers in force.
func (s *state) openChain(blocks *blockstore.Store, workers int) error {
	c, err := chain.Open(s.chainOptions(blocks, workers))
	if err != nil {
		return err
	}
	s.chain = c
	blocks.VerifyWith(newCertifier(c.Schedule()).check)
	return nil
}

func (s *state) blockTime(height uint64) int64 {
	if s.chain == nil {
		return 0
	}
	t, err := s.chain.BlockTime(height)
	if err != nil {
		s.log.Error("the time of a block is not readable", "block", height, "error", err)
		return 0
	}
	return t
}

// halted is why the node must not be believed.
func (s *state) halted() error {
	if s.chain == nil {
		return nil
	}
	return s.chain.Halted()
}

func (s *state) close() error { return s.store.Close() }

// pgEpoch is where timestamptz begins.
var pgEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// timestampTZ is a time as a timestamptz.
func timestampTZ(t time.Time) int64 { return t.UnixMicro() - pgEpoch.UnixMicro() }

// certifier checks that blocks were made by the orderers of the configuration in
// force.
type certifier struct {
	schedule *block.Schedule
	last     int64 // timestamp of the block before; negative if unknown
}

// newCertifier begins with the block after the schedule's last one.
func newCertifier(s *block.Schedule) *certifier { return &certifier{schedule: s, last: -1} }

// check takes the next block.
func (c *certifier) check(b *block.Block) error {
	if len(b.Certificate) == 0 {
		return errors.New("it has no certificate")
	}
	if err := c.schedule.Certify(b, c.last); err != nil {
		return err
	}
	c.last = b.Timestamp
	_, err := c.schedule.Advance(b)
	return err
}

// certificateCheck checks the blocks of a network from block 1 on.
func certificateCheck(g *block.Genesis) func(*block.Block) error {
	return newCertifier(block.NewSchedule(g)).check
}
