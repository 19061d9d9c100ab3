package sql

import (
	"context"
	"fmt"
	"math"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// The options of DECLARE (parsenodes.h).
const (
	cursorBinary   = 0x01
	cursorScroll   = 0x02
	cursorNoScroll = 0x04
	cursorHold     = 0x20
)

// maxKeptBytes bounds the rows that one cursor keeps.
const maxKeptBytes = 256 << 20

// cursor is a query that was declared and is read step by step.
//
// A cursor that may go back either keeps its rows (SCROLL, WITH HOLD) or runs
// its query again from the start: the snapshot of a transaction block does not
// change, so the same rows come again.
type cursor struct {
	session *Session
	name    string
	query   *Prepared
	args    []datum.Datum
	scroll  bool // it may go backward
	keep    bool // rows are kept
	hold    bool
	failed  bool // an error ended it
	depth   int  // how many savepoints stood when it was declared; -1: outlives blocks

	portal *Portal
	given  int64 // rows that portal has given
	kept   [][]datum.Datum
	bytes  int64
	ended  bool // portal has given all rows

	// pos is the row that the cursor stands on, from 1; 0 is before the first
	// and, with atEnd, one more than there are rows is behind the last.
	pos   int64
	atEnd bool
}

// analyzeDeclare plans DECLARE ... CURSOR FOR.
func (s *Session) analyzeDeclare(ctx context.Context, p *Prepared, n *pg.DeclareCursorStmt) error {
	if n.Options&cursorScroll != 0 && n.Options&cursorNoScroll != 0 {
		return pgerr.New(pgerr.InvalidCursorDefinition, "cannot specify both SCROLL and NO SCROLL")
	}
	if n.Options&cursorBinary != 0 {
		return pgerr.NotBuilt("BINARY cursors are not supported")
	}
	st := p.Statement
	st.Node = n.Query
	inner := &Prepared{Statement: st, declared: p.declared}
	if err := s.analyzeQuery(ctx, inner); err != nil {
		return err
	}
	if inner.kind != kindQuery {
		return pgerr.New(pgerr.FeatureNotSupported, "the call of a contract cannot be the query of a cursor").
			WithHint("It is a blockchain transaction: call it with SELECT.")
	}
	p.params = inner.params
	p.run = func(ctx context.Context, args []datum.Datum) (rowSource, error) {
		return s.declare(ctx, n, inner, args)
	}
	return nil
}

func (s *Session) declare(ctx context.Context, n *pg.DeclareCursorStmt, query *Prepared, args []datum.Datum) (rowSource, error) {
	hold := n.Options&cursorHold != 0
	switch {
	case n.Portalname == "":
		return nil, pgerr.New(pgerr.InvalidCursorName, "invalid cursor name: must not be empty")
	case !hold && !s.block.open:
		return nil, pgerr.New(pgerr.NoActiveSQLTransaction, "DECLARE CURSOR can only be used in transaction blocks")
	case s.cursors[n.Portalname] != nil:
		return nil, pgerr.New(pgerr.DuplicateCursor, "cursor \"%s\" already exists", n.Portalname)
	}
	c := &cursor{session: s, name: n.Portalname, query: query, args: slices.Clone(args), hold: hold, depth: len(s.block.savepoints),
		scroll: n.Options&cursorScroll != 0}
	c.keep = c.scroll || hold
	if n.Options&(cursorScroll|cursorNoScroll) == 0 {
		c.scroll = goesBackward(query.query.program.Plan().Root)
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	if hold && !s.block.open {
		if err := c.persist(ctx); err != nil {
			c.close()
			return nil, err
		}
		c.depth = -1
	}
	if s.cursors == nil {
		s.cursors = map[string]*cursor{}
	}
	s.cursors[c.name] = c
	return done("DECLARE CURSOR"), nil
}

// goesBackward tells for which plans PostgreSQL lets a cursor go backward
// without being asked for it (ExecSupportsBackwardScan).
func goesBackward(n plan.Node) bool {
	switch n := n.(type) {
	case *plan.Scan, *plan.VirtualScan, *plan.FuncScan, *plan.Values, *plan.CTEScan, *plan.Sort:
		return true
	case *plan.Project:
		return goesBackward(n.Child)
	case *plan.Filter:
		return goesBackward(n.Child)
	case *plan.Limit:
		return goesBackward(n.Child)
	case *plan.Append:
		return !slices.ContainsFunc(n.Children, func(c plan.Node) bool { return !goesBackward(c) })
	}
	return false
}

// start runs the query from its beginning.
func (c *cursor) start(ctx context.Context) error {
	if c.portal != nil {
		c.portal.Close()
	}
	var err error
	c.portal, err = c.session.Bind(ctx, c.query, c.args)
	c.given, c.ended = 0, false
	return err
}

func (c *cursor) close() {
	if c.portal != nil {
		c.portal.Close()
		c.portal = nil
	}
	c.kept = nil
}

// row returns row i; nil if there are fewer.
func (c *cursor) row(ctx context.Context, i int64) ([]datum.Datum, error) {
	if c.keep && i <= int64(len(c.kept)) {
		return c.kept[i-1], nil
	}
	if i <= c.given && !c.keep {
		if err := c.start(ctx); err != nil {
			return nil, err
		}
	}
	for !c.ended {
		row, err := c.portal.Next(ctx)
		if err != nil {
			return nil, err
		}
		if row == nil {
			c.ended = true
			break
		}
		c.given++
		if c.keep {
			if err := c.remember(row); err != nil {
				return nil, err
			}
		}
		if c.given == i {
			return row, nil
		}
	}
	return nil, nil
}

func (c *cursor) remember(row []datum.Datum) error {
	for _, d := range row {
		c.bytes += 24
		if !d.IsNull() && !d.Inline() {
			c.bytes += int64(len(d.Bytes()))
		}
	}
	if c.bytes > maxKeptBytes {
		return pgerr.New(pgerr.OutOfMemory, "out of memory").
			WithDetail("Cursor \"%s\" keeps more than %d bytes of rows.", c.name, int64(maxKeptBytes)).
			WithHint("Declare it with NO SCROLL and without WITH HOLD.")
	}
	c.kept = append(c.kept, slices.Clone(row))
	return nil
}

// persist reads all rows, so that the cursor outlives its transaction.
func (c *cursor) persist(ctx context.Context) error {
	if _, err := c.row(ctx, math.MaxInt64); err != nil {
		return err
	}
	c.portal.Close()
	return nil
}

func errForwardOnly() error {
	return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "cursor can only scan forward").
		WithHint("Declare it with SCROLL option to enable backward scan.")
}

// forward moves to the next row and returns it; nil at the end.
func (c *cursor) forward(ctx context.Context) ([]datum.Datum, error) {
	if c.atEnd {
		return nil, nil
	}
	row, err := c.row(ctx, c.pos+1)
	if err != nil {
		return nil, err
	}
	c.pos++
	c.atEnd = row == nil
	return row, nil
}

// backward moves to the row before and returns it; nil before the first.
func (c *cursor) backward(ctx context.Context) ([]datum.Datum, error) {
	if !c.scroll {
		return nil, errForwardOnly()
	}
	if c.pos == 0 {
		return nil, nil
	}
	c.pos--
	c.atEnd = false
	if c.pos == 0 {
		return nil, nil
	}
	return c.row(ctx, c.pos)
}

// rewind goes before the first row.
func (c *cursor) rewind() error {
	if c.pos == 0 {
		return nil
	}
	if !c.scroll {
		return errForwardOnly()
	}
	c.pos, c.atEnd = 0, false
	return nil
}

// fetch is a FETCH or MOVE that runs: left rows, one after the other, in one
// direction.
type fetch struct {
	ctx  context.Context
	c    *cursor
	back bool
	left int64 // math.MaxInt64: all
	n    int64
	verb string
	// first is the first row, once it was looked for.
	first  []datum.Datum
	peeked bool
}

// peek makes the first row, so that an error comes before any answer.
func (f *fetch) peek() (err error) {
	f.first, err = f.next()
	f.peeked = err == nil
	return err
}

func (f *fetch) next() ([]datum.Datum, error) {
	if f.peeked {
		f.peeked = false
		return f.first, nil
	}
	if f.left == 0 {
		return nil, nil
	}
	step := f.c.forward
	if f.back {
		step = f.c.backward
	}
	row, err := step(f.ctx)
	if err != nil || row == nil {
		f.left = 0
		f.c.failed = f.c.failed || err != nil
		return nil, err
	}
	if f.left != math.MaxInt64 {
		f.left--
	}
	f.n++
	return row, nil
}

func (f *fetch) close()             {}
func (f *fetch) commandTag() string { return fmt.Sprintf("%s %d", f.verb, f.n) }

// skip makes n steps and drops their rows.
func (c *cursor) skip(ctx context.Context, back bool, n int64) error {
	f := fetch{ctx: ctx, c: c, back: back, left: n}
	for {
		row, err := f.next()
		if err != nil || row == nil {
			return err
		}
	}
}

// fetch goes where a FETCH says, up to the rows that it returns
// (DoPortalRunFetch).
func (c *cursor) fetch(ctx context.Context, dir pg.FetchDirection, n int64, verb string) (*fetch, error) {
	f := &fetch{ctx: ctx, c: c, left: 1, verb: verb}
	switch dir {
	case pg.FetchDirection_FETCH_ABSOLUTE:
		return f, c.absolute(f, n)
	case pg.FetchDirection_FETCH_RELATIVE:
		if n == 0 {
			return f, c.again(f)
		}
		f.back = n < 0
		return f, c.skip(ctx, f.back, abs(n)-1)
	case pg.FetchDirection_FETCH_BACKWARD:
		n = -n
	}
	if n == 0 {
		return f, c.again(f)
	}
	f.back, f.left = n < 0, abs(n)
	if f.back && !c.scroll {
		return nil, errForwardOnly()
	}
	return f, nil
}

// abs is the absolute value; of the most negative number, all.
func abs(n int64) int64 {
	switch {
	case n == math.MinInt64, n == -math.MaxInt64:
		return math.MaxInt64
	case n < 0:
		return -n
	}
	return n
}

// again prepares f to return the present row once more.
func (c *cursor) again(f *fetch) error {
	if c.pos == 0 || c.atEnd {
		f.left = 0
		return nil
	}
	if f.verb == "MOVE" {
		f.left, f.n = 0, 1
		return nil
	}
	if !c.scroll {
		return errForwardOnly()
	}
	c.pos--
	return nil
}

// absolute goes in front of row n, counted from the end if negative.
func (c *cursor) absolute(f *fetch, n int64) error {
	switch {
	case n > 0:
		if n <= c.pos {
			if err := c.rewind(); err != nil {
				return err
			}
		}
		return c.skip(f.ctx, false, n-1-c.pos)
	case n < 0:
		if err := c.skip(f.ctx, false, math.MaxInt64); err != nil {
			return err
		}
		f.back = true
		return c.skip(f.ctx, true, abs(n)-1)
	}
	f.left = 0
	return c.rewind()
}

// analyzeFetch finds the columns of FETCH. The cursor may be declared later, by
// the statement in front of it in a pipeline.
func (s *Session) analyzeFetch(p *Prepared, n *pg.FetchStmt) {
	if c := s.cursors[n.Portalname]; c != nil && !n.Ismove {
		p.columns = c.query.columns
	}
	p.run = func(ctx context.Context, _ []datum.Datum) (rowSource, error) {
		c, err := s.cursor(n.Portalname)
		if err != nil {
			return nil, err
		}
		if c.failed {
			return nil, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "portal \"%s\" cannot be run", c.name)
		}
		if !n.Ismove && !sameColumns(p.columns, c.query.columns) {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "cached plan must not change result type")
		}
		src, err := c.run(ctx, n)
		c.failed = c.failed || err != nil
		return src, err
	}
}

// run is FETCH or MOVE of a cursor that is there.
func (c *cursor) run(ctx context.Context, n *pg.FetchStmt) (rowSource, error) {
	if !n.Ismove {
		f, err := c.fetch(ctx, n.Direction, n.HowMany, "FETCH")
		if err != nil {
			return nil, err
		}
		return f, f.peek()
	}
	f, err := c.fetch(ctx, n.Direction, n.HowMany, "MOVE")
	for err == nil && f.left > 0 {
		_, err = f.next()
	}
	if err != nil {
		return nil, err
	}
	return done(f.commandTag()), nil
}

func (s *Session) cursor(name string) (*cursor, error) {
	if c := s.cursors[name]; c != nil {
		return c, nil
	}
	return nil, pgerr.New(pgerr.InvalidCursorName, "cursor \"%s\" does not exist", name)
}

// analyzeClose is CLOSE.
func (s *Session) analyzeClose(p *Prepared, n *pg.ClosePortalStmt) {
	p.run = func(context.Context, []datum.Datum) (rowSource, error) {
		if n.Portalname == "" {
			s.closeCursors(func(*cursor) bool { return true })
			return done("CLOSE CURSOR ALL"), nil
		}
		c, err := s.cursor(n.Portalname)
		if err != nil {
			return nil, err
		}
		c.close()
		delete(s.cursors, n.Portalname)
		return done("CLOSE CURSOR"), nil
	}
}

// closeCursors closes the cursors that drop says.
func (s *Session) closeCursors(drop func(c *cursor) bool) {
	for name, c := range s.cursors {
		if drop(c) {
			c.close()
			delete(s.cursors, name)
		}
	}
}

// ofBlock are the cursors that an end of the present block concerns: those
// declared WITH HOLD in blocks before have all their rows already.
func (c *cursor) ofBlock() bool { return c.depth >= 0 }

// holdCursors makes the cursors WITH HOLD of a block that commits independent
// of it and closes the others.
func (s *Session) holdCursors(ctx context.Context) error {
	for _, c := range s.cursors {
		if c.hold && c.ofBlock() {
			if err := c.persist(ctx); err != nil {
				return err
			}
			c.depth = -1
		}
	}
	s.closeCursors((*cursor).ofBlock)
	return nil
}
