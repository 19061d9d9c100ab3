package sql

import (
	"context"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// runTransaction carries out BEGIN, COMMIT, ROLLBACK and savepoints. A block
// reads one snapshot from its first query to its end.
func (s *Session) runTransaction(ctx context.Context, n *pg.TransactionStmt) (rowSource, error) {
	switch n.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_BEGIN:
		return s.begin("BEGIN")
	case pg.TransactionStmtKind_TRANS_STMT_START:
		return s.begin("START TRANSACTION")
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

func (s *Session) begin(tag string) (rowSource, error) {
	if s.block.open {
		s.notice("WARNING", pgerr.New(pgerr.ActiveSQLTransaction, "there is already a transaction in progress"))
		return done(tag), nil
	}
	s.block = txBlock{open: true, start: s.engine.now()}
	return done(tag), nil
}

// commit ends the block. A call that it holds is submitted now; if that does not
// commit, the block has ended all the same.
func (s *Session) commit(ctx context.Context, chain bool) (rowSource, error) {
	if !s.block.open {
		s.notice("WARNING", pgerr.New(pgerr.NoActiveSQLTransaction, "there is no transaction in progress"))
		return done("COMMIT"), nil
	}
	tag := "COMMIT"
	if s.block.failed {
		tag = "ROLLBACK"
	} else if held := s.block.held; held != nil {
		if err := held.Commit(ctx); err != nil {
			if endErr := s.endBlock(false); endErr != nil {
				return nil, endErr
			}
			return nil, err
		}
	}
	return done(tag), s.endBlock(chain)
}

func (s *Session) rollback(chain bool) (rowSource, error) {
	if !s.block.open {
		s.notice("WARNING", pgerr.New(pgerr.NoActiveSQLTransaction, "there is no transaction in progress"))
		return done("ROLLBACK"), nil
	}
	return done("ROLLBACK"), s.endBlock(chain)
}

func (s *Session) endBlock(chain bool) error {
	local := s.block.local
	s.block = txBlock{}
	for i := len(local) - 1; i >= 0; i-- {
		if err := s.storeSetting(findSetting(local[i].name), local[i].name, local[i].value); err != nil {
			return err
		}
	}
	if chain {
		_, err := s.begin("")
		return err
	}
	return nil
}

func (s *Session) savepoint(name string) (rowSource, error) {
	if !s.block.open {
		return nil, pgerr.New(pgerr.NoActiveSQLTransaction, "SAVEPOINT can only be used in transaction blocks")
	}
	s.block.savepoints = append(s.block.savepoints, name)
	return done("SAVEPOINT"), nil
}

// findSavepoint returns the position of the newest savepoint of a name.
func (s *Session) findSavepoint(name, command string) (int, error) {
	if !s.block.open {
		return 0, pgerr.New(pgerr.NoActiveSQLTransaction, "%s can only be used in transaction blocks", command)
	}
	for i := len(s.block.savepoints) - 1; i >= 0; i-- {
		if s.block.savepoints[i] == name {
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
	s.block.heldAfter = min(s.block.heldAfter, i)
	return done("RELEASE"), nil
}

// rollbackTo makes a failed block usable again. Local queries have nothing to
// undo; a call held since the savepoint is dropped.
func (s *Session) rollbackTo(name string) (rowSource, error) {
	i, err := s.findSavepoint(name, "ROLLBACK TO SAVEPOINT")
	if err != nil {
		return nil, err
	}
	s.block.savepoints = s.block.savepoints[:i+1]
	s.block.failed = false
	if s.opts.Hold != nil && i < s.block.heldAfter {
		s.block.held, s.block.called = nil, false
	}
	return done("ROLLBACK"), nil
}
