package pgwire

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// portal is a bound statement under a name.
type portal struct {
	name string
	stmt *sql.Prepared
	run  *sql.Portal
	// codes are the result formats that Bind asked for.
	codes []int16
	done  bool // it ran to its end
}

func errMessageFormat() error {
	return pgerr.New(pgerr.ProtocolViolation, "invalid message format")
}

// extendedMessage carries out Parse, Bind, Describe, Execute or Close. After an
// error everything up to the next Sync is skipped; the error is sent at once,
// because a client may wait for it without having sent Sync.
func (c *conn) extendedMessage(typ byte, body []byte) error {
	c.pending = true
	ctx := c.begin()
	defer c.finish()
	err := c.extended(ctx, typ, body)
	if err == nil {
		return nil
	}
	if err := c.statementFailed(ctx, err); err != nil {
		return err
	}
	c.skip = true
	return c.out.flush()
}

func (c *conn) extended(ctx context.Context, typ byte, body []byte) error {
	switch typ {
	case 'P':
		return c.parse(ctx, body)
	case 'B':
		return c.bind(ctx, body)
	case 'D':
		return c.describe(body)
	case 'E':
		return c.execute(ctx, body)
	}
	return c.closeMessage(body)
}

// isEmpty tells that a statement has no text: it may be prepared, bound and
// executed, and does nothing.
func isEmpty(st parse.Statement) bool { return st.Node == nil }

// parse carries out Parse (exec_parse_message).
func (c *conn) parse(ctx context.Context, body []byte) error {
	var m pgproto3.Parse
	if err := m.Decode(body); err != nil {
		return errMessageFormat()
	}
	if err := datum.CheckText(m.Name); err != nil {
		return err
	}
	if err := datum.CheckText(m.Query); err != nil {
		return err
	}
	if m.Name == "" {
		c.session.Deallocate("")
	}
	list, err := c.session.Split(m.Query)
	if err != nil {
		return err
	}
	if len(list) > 1 {
		return pgerr.New(pgerr.SyntaxError, "cannot insert multiple commands into a prepared statement")
	}
	var st parse.Statement
	if len(list) == 1 {
		st = list[0]
		if err := c.mayRun(st); err != nil {
			return err
		}
	}
	var oids []datum.OID
	for _, oid := range m.ParameterOIDs {
		oids = append(oids, datum.OID(oid))
	}
	if _, err := c.session.Prepare(ctx, m.Name, st, oids); err != nil {
		return err
	}
	c.out.empty(parseComplete)
	return nil
}

// bind carries out Bind (exec_bind_message).
func (c *conn) bind(ctx context.Context, body []byte) error {
	var m pgproto3.Bind
	if err := m.Decode(body); err != nil {
		return errMessageFormat()
	}
	p, err := c.session.Statement(m.PreparedStatement)
	if err != nil {
		return err
	}
	if m.DestinationPortal == "" {
		c.closePortal("")
	} else if c.portals[m.DestinationPortal] != nil {
		return pgerr.New(pgerr.DuplicateCursor, "cursor \"%s\" already exists", m.DestinationPortal)
	}
	params := p.Params()
	if err := checkBind(&m, len(params)); err != nil {
		return err
	}
	if err := c.mayBind(p, len(params)); err != nil {
		return err
	}
	args, err := bindArgs(&m, params, c.session.Format())
	if err != nil {
		return err
	}
	run, err := c.session.Bind(ctx, p, args)
	if err != nil {
		return err
	}
	if err := checkOutput(run.Columns(), m.ResultFormatCodes); err != nil {
		run.Close()
		return err
	}
	c.portals[m.DestinationPortal] = &portal{name: m.DestinationPortal, stmt: p, run: run, codes: m.ResultFormatCodes}
	c.out.empty(bindComplete)
	return nil
}

// mayBind: in a failed block only its end may be bound, and nothing that takes
// parameters, whose input functions might look into the database.
func (c *conn) mayBind(p *sql.Prepared, params int) error {
	if c.session.TxStatus() != 'E' {
		return nil
	}
	if params > 0 {
		return errAborted()
	}
	return c.mayRun(p.Statement)
}

// describe carries out Describe.
func (c *conn) describe(body []byte) error {
	var m pgproto3.Describe
	if err := m.Decode(body); err != nil {
		return errMessageFormat()
	}
	switch m.ObjectType {
	case 'S':
		p, err := c.session.Statement(m.Name)
		if err != nil {
			return err
		}
		if err := c.mayDescribe(p.Columns()); err != nil {
			return err
		}
		c.out.parameterDescription(p.Params())
		c.describeRows(p.Columns(), nil)
	case 'P':
		pt, err := c.portal(m.Name)
		if err != nil {
			return err
		}
		if err := c.mayDescribe(pt.run.Columns()); err != nil {
			return err
		}
		c.describeRows(pt.run.Columns(), pt.codes)
	default:
		return pgerr.New(pgerr.ProtocolViolation, "invalid DESCRIBE message subtype %d", m.ObjectType)
	}
	return nil
}

func (c *conn) mayDescribe(cols []plan.Column) error {
	if cols != nil && c.session.TxStatus() == 'E' {
		return errAborted()
	}
	return nil
}

func (c *conn) describeRows(cols []plan.Column, codes []int16) {
	if cols == nil {
		c.out.empty(noData)
		return
	}
	c.out.rowDescription(cols, codes)
}

// execute carries out Execute (exec_execute_message).
func (c *conn) execute(ctx context.Context, body []byte) error {
	var m pgproto3.Execute
	if err := m.Decode(body); err != nil {
		return errMessageFormat()
	}
	pt, err := c.portal(m.Portal)
	if err != nil {
		return err
	}
	if isEmpty(pt.stmt.Statement) {
		c.out.empty(emptyQueryResponse)
		return nil
	}
	if err := c.mayRun(pt.stmt.Statement); err != nil {
		return err
	}
	if pt.done && pt.run.Columns() == nil {
		return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "portal \"%s\" cannot be run", pt.name)
	}
	before := c.session.TxStatus()
	var n int64
	if !pt.done && pt.run.Copy() != nil {
		if err := pt.run.Start(ctx); err != nil {
			return err
		}
		if err := c.copy(ctx, pt.run); err != nil {
			return err
		}
		pt.done = true
	}
	if !pt.done {
		if n, pt.done, err = c.rows(ctx, pt.run, pt.codes, int64(int32(m.MaxRows))); err != nil {
			return err
		}
	}
	if !pt.done {
		c.out.empty(portalSuspended)
		return nil
	}
	// A SELECT counts the rows of this Execute, everything else what it did
	// altogether.
	if tag := pt.run.Tag(); strings.HasPrefix(tag, "SELECT ") {
		c.out.selectComplete(n)
	} else if strings.HasPrefix(tag, "FETCH ") {
		c.out.commandComplete("FETCH " + strconv.FormatInt(n, 10))
	} else {
		c.out.commandComplete(tag)
	}
	c.blockEnded(before, pt)
	return nil
}

// cancelEvery is after how many rows it is checked that the client still wants
// them.
const cancelEvery = 128

// rows sends rows of pt: all if max is not positive, else at most max. done
// tells that the end was seen; like PostgreSQL, a portal of exactly max rows
// does not know yet that it is at its end.
func (c *conn) rows(ctx context.Context, pt *sql.Portal, codes []int16, max int64) (n int64, done bool, err error) {
	cols, f := pt.Columns(), c.session.Format()
	for max <= 0 || n < max {
		row, err := pt.Next(ctx)
		if err != nil {
			return n, false, err
		}
		if row == nil {
			return n, true, nil
		}
		if err := c.out.dataRow(cols, codes, f, row); err != nil {
			return n, false, err
		}
		n++
		if n%cancelEvery == 0 && ctx.Err() != nil {
			return n, false, ctx.Err()
		}
	}
	return n, false, nil
}

// closeMessage carries out Close; closing what does not exist is no error.
func (c *conn) closeMessage(body []byte) error {
	var m pgproto3.Close
	if err := m.Decode(body); err != nil {
		return errMessageFormat()
	}
	switch m.ObjectType {
	case 'S':
		c.session.Deallocate(m.Name)
	case 'P':
		c.closePortal(m.Name)
	default:
		return pgerr.New(pgerr.ProtocolViolation, "invalid CLOSE message subtype %d", m.ObjectType)
	}
	c.out.empty(closeComplete)
	return nil
}

func (c *conn) portal(name string) (*portal, error) {
	if pt := c.portals[name]; pt != nil {
		return pt, nil
	}
	return nil, pgerr.New(pgerr.InvalidCursorName, "portal \"%s\" does not exist", name)
}

func (c *conn) closePortal(name string) {
	pt := c.portals[name]
	if pt == nil {
		return
	}
	delete(c.portals, name)
	pt.run.Close()
}

func (c *conn) closePortals() {
	for name := range c.portals {
		c.closePortal(name)
	}
}

// blockEnded destroys the portals of a transaction block that the statement
// before which the status was before has ended; keep is the portal that is
// running.
func (c *conn) blockEnded(before byte, keep *portal) {
	if before == 'I' || c.session.TxStatus() != 'I' {
		return
	}
	for name, pt := range c.portals {
		if pt != keep {
			c.closePortal(name)
		}
	}
}
