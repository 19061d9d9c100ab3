package server

import (
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts/determinism"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// LintFinding is a finding with its place in the script.
type LintFinding struct {
	determinism.Finding
	// At is the byte offset in the script; -1 if the function is not of it, but
	// called by one that is.
	At int
}

// Linter checks deployment scripts without a network, one after the other on a
// database in memory: each sees what the ones before it have defined. It is not
// safe for concurrent use.
type Linter struct {
	state *state
	txn   *mvcc.Txn
	cat   *catalog.Catalog
}

const lintHeight = 1

// NewLinter makes an empty database. Close it.
func NewLinter() (*Linter, error) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	store, err := mvcc.Open("state", mvcc.Options{FS: vfs.NewMem(), Logger: log})
	if err != nil {
		return nil, err
	}
	l := &Linter{state: newState(store, nil, log), txn: store.Begin(mvcc.AsOf(0), block.XID(lintHeight, 1))}
	if l.cat, err = l.state.engine.Catalog(l.txn); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close forgets everything.
func (l *Linter) Close() error { return errors.Join(l.txn.Close(), l.state.close()) }

// Check applies a script as submit_deploytx does and returns what is to be said
// about it. A *pgerr.Error is that of a script that cannot be executed.
func (l *Linter) Check(script string) ([]LintFinding, error) {
	owner := identity.UserID{Org: DevOrg, Name: DevAdmin}
	env := l.state.engine.ContractEnv(l.txn, l.txn.XID(), l.cat, &builtin.TxInfo{User: owner.Name, Org: owner.Org})
	found, err := l.state.system.Apply(env, owner.String(), script, func(*pgerr.Error) {})
	if err != nil && found == nil {
		return nil, err
	}
	l.cat = env.Catalog
	out := make([]LintFinding, len(found))
	for i := range found {
		out[i] = LintFinding{Finding: found[i], At: placeIn(script, &found[i], l.cat)}
	}
	return out, nil
}

// placeIn finds the place of a finding in the script that creates its function,
// or the statement if the body is not written there as it is.
func placeIn(script string, f *determinism.Finding, cat *catalog.Catalog) int {
	for _, fn := range cat.AllFuncs() {
		if fn.Schema+"."+fn.Name+"("+fn.Signature()+")" != f.Function {
			continue
		}
		at := strings.LastIndex(script, fn.Source)
		if at < 0 {
			return -1 // it calls what an earlier script has created
		}
		if strings.Count(fn.Source, fn.Body) == 1 {
			return at + strings.Index(fn.Source, fn.Body) + f.Offset
		}
		return at
	}
	return -1
}
