package sql

import (
	"context"
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// Copy describes the data of a COPY statement.
type Copy struct {
	// In tells COPY FROM: the client sends data.
	In      bool
	Binary  bool
	Columns int
}

// InsertRows writes the rows of COPY FROM into a table and returns how many it
// wrote. Each row has a datum for each of columns (positions in Table.Columns),
// valid for good; the other columns take their defaults. next returns nil at the
// end; an error of it ends the statement as it is.
type InsertRows func(ctx context.Context, table *catalog.Table, columns []int, next func() ([]datum.Datum, error)) (int64, error)

// Copy tells that the portal is a COPY from or to the client; nil if it is not.
// The rows of COPY TO are pieces of data, one bytea each; data for COPY FROM
// goes to CopyIn, after Start.
func (pt *Portal) Copy() *Copy { return pt.prepared.copy }

// CopyIn carries out COPY FROM. read returns the next piece of data, which is
// not kept, or io.EOF at the end; any other error ends the statement.
func (pt *Portal) CopyIn(ctx context.Context, read func() ([]byte, error)) error {
	in, ok := pt.source.(*copyIn)
	if !ok {
		return fmt.Errorf("sql: CopyIn of a portal that takes no data")
	}
	err := in.run(ctx, read)
	pt.finish(err)
	return err
}

// analyzeCopy is COPY.
func (s *Session) analyzeCopy(ctx context.Context, p *Prepared, n *pg.CopyStmt) error {
	if n.IsProgram || n.Filename != "" {
		return errServerFile(n)
	}
	o, err := parseCopyOptions(n.Options, n.IsFrom, p.Statement.Script)
	if err != nil {
		return err
	}
	if n.IsFrom {
		return s.analyzeCopyFrom(p, n, o)
	}
	return s.analyzeCopyTo(ctx, p, n, o)
}

// errServerFile: the files of a node are nobody's business.
func errServerFile(n *pg.CopyStmt) error {
	role, what := "pg_write_server_files", "to a file"
	switch {
	case n.IsProgram:
		role, what = "pg_execute_server_program", "to or from an external program"
	case n.IsFrom:
		role, what = "pg_read_server_files", "from a file"
	}
	return pgerr.New(pgerr.InsufficientPrivilege, "must be superuser or have privileges of the %s role to COPY %s", role, what).
		WithHint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.")
}

// copyTable finds the stored table that COPY names; nil for a relation that is
// computed.
func (s *Session) copyTable(c *catalog.Catalog, v *pg.RangeVar) *catalog.Table {
	schemas := s.path()
	if v.Schemaname != "" {
		schemas = []string{v.Schemaname}
	}
	for _, schema := range schemas {
		if t, ok := c.Table(schema, v.Relname); ok {
			return t
		}
	}
	return nil
}

// copyColumns are the positions of the columns that COPY names, or of all.
func copyColumns(t *catalog.Table, list []*pg.Node) ([]int, error) {
	var out []int
	if len(list) == 0 {
		for i := range t.Columns {
			if c := &t.Columns[i]; !c.Dropped && c.Generated == "" {
				out = append(out, i)
			}
		}
		return out, nil
	}
	for _, n := range list {
		name := n.GetString_().GetSval()
		i := t.Column(name)
		switch {
		case i < 0:
			return nil, pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.Name)
		case t.Columns[i].Generated != "":
			return nil, pgerr.New(pgerr.InvalidColumnReference, "column \"%s\" is a generated column", name).
				WithDetail("Generated columns cannot be used in COPY.")
		case slices.Contains(out, i):
			return nil, pgerr.New(pgerr.DuplicateColumn, "column \"%s\" specified more than once", name)
		}
		out = append(out, i)
	}
	return out, nil
}

// analyzeCopyTo makes COPY TO a query with rows of data.
func (s *Session) analyzeCopyTo(ctx context.Context, p *Prepared, n *pg.CopyStmt, o *copyOptions) error {
	inner := &Prepared{Statement: p.Statement, declared: p.declared}
	inner.Statement.Node = n.Query
	var table *catalog.Table
	if n.Relation != nil {
		err := s.atSnapshot(func(w *work) error {
			table = s.copyTable(w.catalog, n.Relation)
			sel, err := s.copySelect(table, n)
			inner.Statement.Node = sel
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := s.analyzeQuery(ctx, inner); err != nil {
		return err
	}
	if inner.kind != kindQuery {
		return pgerr.New(pgerr.FeatureNotSupported, "COPY cannot call a contract").
			WithHint("The call of a contract is a blockchain transaction: write it as a statement of its own.")
	}
	quoted, err := columnFlags(inner.columns, o.forceQuote, "FORCE_QUOTE", table)
	if err != nil {
		return err
	}
	p.params = inner.params
	p.copy = &Copy{Binary: o.binary, Columns: len(inner.columns)}
	p.run = func(ctx context.Context, args []datum.Datum) (rowSource, error) {
		portal, err := s.Bind(ctx, inner, args)
		if err != nil {
			return nil, err
		}
		if !sameColumns(inner.columns, portal.Columns()) {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "cached plan must not change result type")
		}
		out := &copyOut{ctx: ctx, portal: portal, format: s.Format()}
		out.enc = copyEncoder{copyOptions: o, columns: inner.columns, quoted: quoted}
		return out, nil
	}
	return nil
}

// columnFlags tells which columns an option names; t is nil for a query.
func columnFlags(cols []plan.Column, names []string, option string, t *catalog.Table) ([]bool, error) {
	out := make([]bool, len(cols))
	for _, name := range names {
		i := slices.IndexFunc(cols, func(c plan.Column) bool { return c.Name == name })
		switch {
		case i < 0 && t == nil:
			return nil, pgerr.New(pgerr.UndefinedColumn, "column \"%s\" does not exist", name)
		case i < 0 && t.Column(name) < 0:
			return nil, pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.Name)
		case i < 0:
			return nil, pgerr.New(pgerr.InvalidColumnReference, "%s column \"%s\" not referenced by COPY", option, name)
		}
		out[i] = true
	}
	return out, nil
}

// copySelect is the query that COPY of a relation means; t is nil for one that
// is computed.
func (s *Session) copySelect(t *catalog.Table, n *pg.CopyStmt) (*pg.Node, error) {
	var targets []*pg.Node
	switch {
	case t == nil && len(n.Attlist) == 0:
		targets = append(targets, starTarget())
	case t == nil:
		for _, a := range n.Attlist {
			targets = append(targets, columnTarget(a.GetString_().GetSval()))
		}
	case t.Kind == catalog.View:
		return nil, pgerr.New(pgerr.WrongObjectType, "cannot copy from view \"%s\"", t.Name).WithHint("Try the COPY (SELECT ...) TO variant.")
	default:
		columns, err := copyColumns(t, n.Attlist)
		if err != nil {
			return nil, err
		}
		for _, i := range columns {
			targets = append(targets, columnTarget(t.Columns[i].Name))
		}
	}
	// Errors about the relation have no position, as in PostgreSQL.
	from := &pg.RangeVar{Schemaname: n.Relation.Schemaname, Relname: n.Relation.Relname, Inh: true, Relpersistence: "p", Location: -1}
	sel := &pg.SelectStmt{TargetList: targets, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
		FromClause: []*pg.Node{{Node: &pg.Node_RangeVar{RangeVar: from}}}}
	return &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: sel}}, nil
}

func columnTarget(name string) *pg.Node {
	ref := pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(name)}, -1)
	return pg.MakeResTargetNodeWithVal(ref, -1)
}

func starTarget() *pg.Node {
	star := &pg.Node{Node: &pg.Node_AStar{AStar: &pg.A_Star{}}}
	return pg.MakeResTargetNodeWithVal(pg.MakeColumnRefNode([]*pg.Node{star}, -1), -1)
}

// copyOut makes the data of COPY TO.
type copyOut struct {
	ctx    context.Context
	portal *Portal
	format *datum.Format
	enc    copyEncoder
	buf    []byte
	row    [1]datum.Datum
	begun  bool
	ended  bool
	count  int64
}

func (c *copyOut) next() ([]datum.Datum, error) {
	c.buf = c.buf[:0]
	if !c.begun {
		c.begun = true
		c.buf = c.enc.begin(c.buf)
		if len(c.buf) > 0 && !c.enc.binary {
			return c.piece(), nil
		}
	}
	if c.ended {
		return nil, nil
	}
	row, err := c.portal.Next(c.ctx)
	if err != nil {
		return nil, err
	}
	if row == nil {
		c.ended = true
		if c.buf = c.enc.end(c.buf); len(c.buf) == 0 {
			return nil, nil
		}
		return c.piece(), nil
	}
	c.count++
	c.buf = c.enc.row(c.buf, row, c.format)
	return c.piece(), nil
}

func (c *copyOut) piece() []datum.Datum {
	c.row[0] = datum.Bytes(c.buf)
	return c.row[:]
}

func (c *copyOut) close()             { c.portal.Close() }
func (c *copyOut) commandTag() string { return fmt.Sprintf("COPY %d", c.count) }

// analyzeCopyFrom finds the target of COPY FROM.
func (s *Session) analyzeCopyFrom(p *Prepared, n *pg.CopyStmt, o *copyOptions) error {
	if n.WhereClause != nil {
		return pgerr.NotBuilt("COPY FROM with WHERE is not supported")
	}
	return s.atSnapshot(func(w *work) error {
		t := s.copyTable(w.catalog, n.Relation)
		if t == nil {
			return pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", n.Relation.Relname)
		}
		if t.Kind == catalog.MaterializedView {
			return pgerr.New(pgerr.WrongObjectType, "cannot copy to materialized view \"%s\"", t.Name)
		}
		if t.Kind == catalog.View {
			return pgerr.New(pgerr.WrongObjectType, "cannot copy to view \"%s\"", t.Name)
		}
		insert, err := s.copyTarget(t)
		if err != nil {
			return err
		}
		columns, err := copyColumns(t, n.Attlist)
		if err != nil {
			return err
		}
		dec := &copyDecoder{copyOptions: o, table: t, columns: columns}
		if err := dec.flags(); err != nil {
			return err
		}
		p.copy = &Copy{In: true, Binary: o.binary, Columns: len(columns)}
		p.run = func(context.Context, []datum.Datum) (rowSource, error) {
			d := *dec
			d.format = s.Format()
			return &copyIn{dec: &d, insert: insert}, nil
		}
		return nil
	})
}

// copyTarget is what writes the rows of a table.
func (s *Session) copyTarget(t *catalog.Table) (InsertRows, error) {
	switch {
	case t.System:
		return nil, pgerr.New(pgerr.InsufficientPrivilege, "cannot change \"%s\": the ledger itself writes this table", t.Name)
	case s.opts.InsertRows != nil:
		return s.opts.InsertRows, nil
	case !t.Local():
		return nil, pgerr.New(pgerr.InsufficientPrivilege, "cannot copy into table \"%s\" directly: rows in schema blockchain are changed by contracts only", t.Name).
			WithHint("Put the statement into a function, have it deployed (CREATE FUNCTION as admin, or create_deploytx), and call it with SELECT.")
	case s.insertRows == nil:
		return nil, pgerr.NotBuilt("COPY into schema %s is not supported", t.Schema)
	}
	return s.insertRows, nil
}

// copyIn is a COPY FROM that waits for its data.
type copyIn struct {
	dec    *copyDecoder
	insert InsertRows
	count  int64
}

func (c *copyIn) run(ctx context.Context, read func() ([]byte, error)) error {
	c.dec.in.read = read
	n, err := c.insert(ctx, c.dec.table, c.dec.columns, c.dec.next)
	if err != nil {
		if e, ok := pgerr.From(err); ok && !c.dec.reported && c.dec.reading {
			// PostgreSQL enters keys for many rows at a time.
			c.dec.lineValid = c.dec.lineValid && e.Code != pgerr.UniqueViolation
			e.AddContext(c.dec.where())
		}
		return err
	}
	c.count = n
	// What follows the end marker is read and dropped.
	return c.dec.in.drain()
}

func (c *copyIn) next() ([]datum.Datum, error) {
	return nil, pgerr.New(pgerr.ProtocolViolation, "COPY FROM STDIN needs data, which this way of running it cannot take")
}

func (c *copyIn) close()             {}
func (c *copyIn) commandTag() string { return fmt.Sprintf("COPY %d", c.count) }
