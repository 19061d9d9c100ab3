package exec

import (
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
)

// Store is the workspace that holds the rows of a table.
func (e *Env) Store(t *catalog.Table) *mvcc.Txn {
	if t.Local() {
		return e.Private
	}
	return e.Txn
}

// NoteShared adds reads of the catalog to the footprints. Keys of catalog rows
// begin with the schema, so that the reads of one store mean nothing in the
// other.
func (e *Env) NoteShared(reads []rwset.Read) {
	if e.Txn != nil {
		e.Txn.NoteShared(reads)
	}
	if e.Private != nil {
		e.Private.NoteShared(reads)
	}
}

// Mark is a savepoint of both workspaces.
type Mark struct{ txn, private int }

// Savepoint marks the present state of what was written.
func (e *Env) Savepoint() Mark {
	var m Mark
	if e.Txn != nil {
		m.txn = e.Txn.Savepoint()
	}
	if e.Private != nil {
		m.private = e.Private.Savepoint()
	}
	return m
}

// RollbackTo undoes the writes since a savepoint, which stays.
func (e *Env) RollbackTo(m Mark) {
	if e.Txn != nil {
		e.Txn.RollbackTo(m.txn)
	}
	if e.Private != nil {
		e.Private.RollbackTo(m.private)
	}
}

// Release forgets a savepoint and keeps the writes since.
func (e *Env) Release(m Mark) {
	if e.Txn != nil {
		e.Txn.Release(m.txn)
	}
	if e.Private != nil {
		e.Private.Release(m.private)
	}
}
