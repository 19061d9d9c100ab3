package sql

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// runTransaction carries out BEGIN, COMMIT, ROLLBACK and savepoints. A block
// reads one snapshot from its first query to its end.
func (s *Session) runTransaction(n *pg.TransactionStmt) (rowSource, error) {
	switch n.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_BEGIN:
		return s.begin("BEGIN", n.Options)
	case pg.TransactionStmtKind_TRANS_STMT_START:
		return s.begin("START TRANSACTION", n.Options)
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT:
		return s.commit(n.Chain)
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

func (s *Session) commit(chain bool) (rowSource, error) {
	if !s.block.open {
		s.notice("WARNING", pgerr.New(pgerr.NoActiveSQLTransaction, "there is no transaction in progress"))
		return done("COMMIT"), s.endScript(true)
	}
	tag := "COMMIT"
	var err error
	if s.block.failed {
		tag = "ROLLBACK"
	} else if s.block.private != nil {
		err = s.engine.private.commit(s.block.private.txn)
	}
	if end := s.endBlock(chain && err == nil); err == nil {
		err = end
	}
	return done(tag), err
}

func (s *Session) rollback(chain bool) (rowSource, error) {
	if !s.block.open {
		s.notice("WARNING", pgerr.New(pgerr.NoActiveSQLTransaction, "there is no transaction in progress"))
		return done("ROLLBACK"), s.endScript(false)
	}
	return done("ROLLBACK"), s.endBlock(chain)
}

func (s *Session) endBlock(chain bool) error {
	local := s.block.local
	readOnly := s.block.readOnly
	s.block.private.drop()
	s.block = txBlock{}
	for i := len(local) - 1; i >= 0; i-- {
		if err := s.storeSetting(findSetting(local[i].name), local[i].name, local[i].value); err != nil {
			return err
		}
	}
	if chain {
		_, err := s.begin("", nil)
		s.block.readOnly = readOnly
		return err
	}
	return nil
}

func (s *Session) savepoint(name string) (rowSource, error) {
	if !s.block.open {
		return nil, pgerr.New(pgerr.NoActiveSQLTransaction, "SAVEPOINT can only be used in transaction blocks")
	}
	s.block.savepoints = append(s.block.savepoints, s.block.private.savepoint(name))
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
	return done("RELEASE"), nil
}

// rollbackTo makes a failed block usable again and undoes what was done in
// schema private.
func (s *Session) rollbackTo(name string) (rowSource, error) {
	i, err := s.findSavepoint(name, "ROLLBACK TO SAVEPOINT")
	if err != nil {
		return nil, err
	}
	s.block.savepoints = s.block.savepoints[:i+1]
	s.block.failed = false
	s.block.private.rollbackTo(s.block.savepoints[i])
	return done("ROLLBACK"), nil
}
