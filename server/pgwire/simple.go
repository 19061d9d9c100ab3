package pgwire

import (
	"context"

	"github.com/jackc/pgx/v5/pgproto3"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// errAborted is the answer to everything but the end of a failed transaction.
func errAborted() error {
	return pgerr.New(pgerr.InFailedSQLTransaction,
		"current transaction is aborted, commands ignored until end of transaction block")
}

// mayRun refuses a statement in a failed transaction block unless it ends the
// block or returns to a savepoint (IsTransactionExitStmt).
func (c *conn) mayRun(st parse.Statement) error {
	if c.session.TxStatus() != 'E' {
		return nil
	}
	switch st.Node.GetTransactionStmt().GetKind() {
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT,
		pg.TransactionStmtKind_TRANS_STMT_ROLLBACK,
		pg.TransactionStmtKind_TRANS_STMT_PREPARE,
		pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		return nil
	}
	return errAborted()
}

// simple carries out a Query message: a script, which ends at its first error
// (exec_simple_query).
func (c *conn) simple(body []byte) error {
	c.pending = false
	ctx := c.begin()
	err := c.script(ctx, body)
	if err != nil {
		err = c.statementFailed(ctx, err)
	}
	c.finish()
	if err != nil {
		return err
	}
	return c.settle()
}

func (c *conn) script(ctx context.Context, body []byte) error {
	var m pgproto3.Query
	if err := m.Decode(body); err != nil {
		return errMessageFormat()
	}
	c.session.Deallocate("")
	c.closePortal("")
	// The statements of the script pass through the unnamed one, which must not
	// be there afterwards.
	defer c.session.Deallocate("")
	if err := datum.CheckText(m.String); err != nil {
		return err
	}
	list, err := c.session.Split(m.String)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		c.out.empty(emptyQueryResponse)
	}
	if len(list) > 1 {
		c.session.BeginScript()
		// After an error; otherwise the last statement has ended it.
		defer func() { _ = c.session.EndScript(false) }()
	}
	for i, st := range list {
		if err := c.runSimple(ctx, st, i == len(list)-1); err != nil {
			return err
		}
	}
	return nil
}

// runSimple runs one statement of a script; the last one is complete only when
// the script is committed.
func (c *conn) runSimple(ctx context.Context, st parse.Statement, last bool) error {
	if err := c.mayRun(st); err != nil {
		return err
	}
	before := c.session.TxStatus()
	pt, err := c.bindSimple(ctx, st)
	if err != nil {
		return err
	}
	defer pt.Close()
	cols := pt.Columns()
	if err := checkOutput(cols, nil); err != nil {
		return err
	}
	if err := pt.Start(ctx); err != nil {
		return err
	}
	if cols != nil {
		c.out.rowDescription(cols, nil)
	}
	if err := c.simpleRows(ctx, pt); err != nil {
		return err
	}
	c.blockEnded(before, nil)
	if last {
		if err := c.session.EndScript(true); err != nil {
			return err
		}
	}
	c.out.commandComplete(pt.Tag())
	return nil
}

// simpleRows sends all that the statement gives.
func (c *conn) simpleRows(ctx context.Context, pt *sql.Portal) error {
	if pt.Copy() != nil {
		return c.copy(ctx, pt)
	}
	_, _, err := c.rows(ctx, pt, nil, 0)
	return err
}

// bindSimple prepares and binds a statement without parameters.
func (c *conn) bindSimple(ctx context.Context, st parse.Statement) (*sql.Portal, error) {
	p, err := c.session.Prepare(ctx, "", st, nil)
	if err == nil && len(p.Params()) == 0 {
		return c.session.Bind(ctx, p, nil)
	}
	if err == nil || pgerr.CodeOf(err) == pgerr.IndeterminateDatatype {
		if none := noParameter(st); none != nil {
			return nil, none
		}
	}
	return nil, err
}

// noParameter reports the first parameter in a statement that cannot have any.
func noParameter(st parse.Statement) error {
	scanned, err := pg.Scan(st.Text)
	if err != nil {
		return err
	}
	for _, t := range scanned.Tokens {
		if t.Token == pg.Token_PARAM {
			return pgerr.New(pgerr.UndefinedParameter, "there is no parameter %s", st.Text[t.Start:t.End]).
				At(parse.Position(st.Script, int32(st.Offset)+t.Start))
		}
	}
	return nil
}
