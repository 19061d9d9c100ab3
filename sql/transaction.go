package sql

import (
	"context"
	"errors"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// runTransaction carries out BEGIN, COMMIT, ROLLBACK and savepoints. A block
// reads one snapshot from its first query to its end.
func (s *Session) runTransaction(ctx context.Context, n *pg.TransactionStmt) (rowSource, error) {
	switch n.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_BEGIN:
		return s.begin("BEGIN", n.Options)
	case pg.TransactionStmtKind_TRANS_STMT_START:
		return s.begin("START TRANSACTION", n.Options)
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT:
		return s.commit(ctx, n.Chain)
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK:
		return s.rollback(n.Chain)
	case pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
		return s.savepoint(n.SavepointName)
	case pg.TransactionStmtKind_TRANS_STMT_RELEASE:
		return s.release(n.SavepointName)
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		return s.rollbackTo(n.SavepointName)
	}
	return nil, pgerr.NotBuilt("two-phase commit is not supported")
}

func (s *Session) begin(tag string, options []*pg.Node) (rowSource, error) {
	if s.block.open {
		s.notice("WARNING", pgerr.New(pgerr.ActiveSQLTransaction, "there is already a transaction in progress"))
		return done(tag), nil
	}
	// A block that begins inside a script takes over what the script did before.
	private := s.implicit.private
	s.implicit.private = nil
	s.block = txBlock{open: true, private: private, start: s.engine.now(), readOnly: s.settings.on("default_transaction_read_only")}
	return done(tag), s.setTransaction(options)
}

// commit ends the block. A call that it holds is submitted now; if that does not
// commit, the block has ended all the same.
func (s *Session) commit(ctx context.Context, chain bool) (rowSource, error) {
	if !s.block.open {
		return s.noBlock("COMMIT", chain)
	}
	tag := "COMMIT"
	if s.block.failed {
		tag = "ROLLBACK"
		s.atRollback()
	} else if err := s.commitBlock(ctx); err != nil {
		s.atRollback()
		return nil, errors.Join(err, s.endBlock(true, false))
	}
	return done(tag), s.endBlock(s.block.failed, chain)
}

// commitBlock does what the end of a block that did not fail brings about.
func (s *Session) commitBlock(ctx context.Context) error {
	if err := s.atCommit(); err != nil {
		return err
	}
	if held := s.block.held; held != nil {
		return held.Commit(ctx)
	}
	return nil
}

func (s *Session) rollback(chain bool) (rowSource, error) {
	if !s.block.open {
		return s.noBlock("ROLLBACK", chain)
	}
	s.atRollback()
	return done("ROLLBACK"), s.endBlock(true, chain)
}

// noBlock is COMMIT or ROLLBACK outside a transaction block: it ends what the
// script did so far.
func (s *Session) noBlock(command string, chain bool) (rowSource, error) {
	if chain {
		return nil, pgerr.New(pgerr.NoActiveSQLTransaction, "%s AND CHAIN can only be used in transaction blocks", command)
	}
	s.notice("WARNING", pgerr.New(pgerr.NoActiveSQLTransaction, "there is no transaction in progress"))
	return done(command), s.endScript(command == "COMMIT")
}

func (s *Session) endBlock(undo, chain bool) error {
	readOnly := s.block.readOnly
	err := s.restoreSettings(0, undo)
	s.block.private.drop()
	s.block = txBlock{}
	if err != nil || !chain {
		return err
	}
	_, err = s.begin("", nil)
	s.block.readOnly = readOnly
	return err
}

func (s *Session) savepoint(name string) (rowSource, error) {
	if !s.block.open {
		return nil, pgerr.New(pgerr.NoActiveSQLTransaction, "SAVEPOINT can only be used in transaction blocks")
	}
	s.block.savepoints = append(s.block.savepoints, savepoint{name, len(s.block.saved), s.block.private.savepoint()})
	return done("SAVEPOINT"), nil
}

// findSavepoint returns the position of the newest savepoint of a name.
func (s *Session) findSavepoint(name, command string) (int, error) {
	if !s.block.open {
		return 0, pgerr.New(pgerr.NoActiveSQLTransaction, "%s can only be used in transaction blocks", command)
	}
	for i := len(s.block.savepoints) - 1; i >= 0; i-- {
		if s.block.savepoints[i].name == name {
			return i, nil
		}
	}
	return 0, pgerr.New(pgerr.InvalidSavepoint, "savepoint \"%s\" does not exist", name)
}

func (s *Session) release(name string) (rowSource, error) {
	i, err := s.findSavepoint(name, "RELEASE SAVEPOINT")
	if err != nil {
		return nil, err
	}
	s.block.savepoints = s.block.savepoints[:i]
	s.atRelease(i)
	s.block.heldAfter = min(s.block.heldAfter, i)
	return done("RELEASE"), nil
}

// rollbackTo makes a failed block usable again and undoes what was done in
// schema private and to settings; a call held since the savepoint is dropped.
func (s *Session) rollbackTo(name string) (rowSource, error) {
	i, err := s.findSavepoint(name, "ROLLBACK TO SAVEPOINT")
	if err != nil {
		return nil, err
	}
	if err := s.restoreSettings(s.block.savepoints[i].saved, true); err != nil {
		return nil, err
	}
	s.block.savepoints = s.block.savepoints[:i+1]
	s.atRollbackTo(i)
	s.block.failed = false
	if s.opts.Hold != nil && i < s.block.heldAfter {
		s.block.held, s.block.called = nil, false
	}
	s.block.private.rollbackTo(s.block.savepoints[i].private)
	return done("ROLLBACK"), nil
}

// endsFailed tells that a statement is accepted in a failed transaction block.
func endsFailed(n *pg.TransactionStmt) bool {
	if n == nil {
		return false
	}
	switch n.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT, pg.TransactionStmtKind_TRANS_STMT_ROLLBACK,
		pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO, pg.TransactionStmtKind_TRANS_STMT_PREPARE:
		return true
	}
	return false
}
