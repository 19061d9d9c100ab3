package plan

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// rel is one item of FROM that names can refer to.
type rel struct {
	id     int // its place among the rels of its query, for join planning
	alias  string
	name   string // of the table, where an alias hides it
	schema string // of a table named without alias; "" otherwise
	cols   []column
	hidden []column // found by name, not part of *: system columns
	scan   *Scan    // of a stored table: slots are handed out on first use
	vscan  *VirtualScan
	fscan  *FuncScan
	row    *datum.Desc // type of the item as a whole; nil: an anonymous record
	cscan  *CTEScan
	table  *catalog.Table
	// indexes are the expressions of the table's indexes, once they were asked for.
	indexes *rowIndexes
	// computed are the slots of merged columns that a join computes; such a rel has
	// no columns and no name.
	computed []int
	// visible is false for an item that an expression stands beside, not behind.
	visible bool
	// inside is an item of a subquery that was merged into this query: names find
	// its columns through the item that stands for the subquery only.
	inside  bool
	lateral bool
}

// scope is what names mean at one place of a query.
type scope struct {
	parent *scope
	rels   []*rel
	// shown are the columns that names without qualifier find; nil = all of rels.
	shown []shown
	ctes  map[string]*cteRef
	// outer counts references to the scope's parent: see correlated.
	correlated bool
	volatile   bool
	group      *grouping
	// aggs says whether aggregates are allowed here, and if not, where we are.
	noAggs string
	// windows collects the windows of the query; noWindows says where we are if
	// none is allowed here although the query has some.
	windows   *windowing
	noWindows string
	// sets collects set-returning functions of a select list.
	sets *[]SetItem
}

// child opens the scope of a subquery.
func (s *scope) child() *scope { return &scope{parent: s, noAggs: ""} }

// absorb takes over what was found in a scope that stands beside s rather than
// below it: references to s's parent, and volatile calls.
func (s *scope) absorb(in *scope) {
	s.correlated = s.correlated || in.correlated
	s.volatile = s.volatile || in.volatile
}

// columnRef resolves a name, possibly qualified.
func (p *planner) columnRef(ref *pg.ColumnRef, s *scope) (Expr, error) {
	parts, star := nameParts(ref.Fields)
	if star {
		return p.starRef(parts, s, ref.Location)
	}
	if len(parts) > 4 {
		return nil, p.errAt(ref.Location, pgerr.SyntaxError, "improper qualified name (too many dotted names): %s", strings.Join(parts, "."))
	}
	col, err := p.findColumn(parts, s, ref.Location)
	if err != nil {
		return nil, err
	}
	if col != nil && p.opts.ColumnFirst {
		return col, nil
	}
	v, err := p.variable(parts)
	if err != nil {
		return nil, p.locate(err, ref.Location)
	}
	switch {
	case col != nil && v != nil:
		return nil, p.errAt(ref.Location, pgerr.AmbiguousColumn, "column reference \"%s\" is ambiguous", strings.Join(parts, ".")).
			WithDetail("It could refer to either a PL/pgSQL variable or a table column.")
	case col != nil:
		return col, nil
	case v != nil:
		return v, nil
	}
	if e, err := p.wholeRow(parts, s, ref.Location); e != nil || err != nil {
		return e, err
	}
	return nil, p.noColumn(parts, s, ref.Location)
}

func (p *planner) variable(parts []string) (Expr, error) {
	if p.opts.Variable == nil || p.stored > 0 {
		return nil, nil
	}
	return p.opts.Variable(parts)
}

func nameParts(fields []*pg.Node) (parts []string, star bool) {
	for _, f := range fields {
		switch n := f.Node.(type) {
		case *pg.Node_String_:
			parts = append(parts, n.String_.Sval)
		case *pg.Node_AStar:
			star = true
		}
	}
	return parts, star
}

// findColumn looks for a column from the innermost scope outwards; nil if
// there is none.
func (p *planner) findColumn(parts []string, s *scope, loc int32) (Expr, error) {
	name := parts[len(parts)-1]
	for at := s; at != nil; at = at.parent {
		e, err := p.findIn(at, parts[:len(parts)-1], name, loc)
		if err != nil {
			return nil, err
		}
		if e != nil {
			markCorrelated(s, at)
			return e, nil
		}
	}
	return nil, nil
}

// markCorrelated notes that every scope from s out to, but not including, at
// depends on an outer row.
func markCorrelated(s, at *scope) {
	for ; s != at; s = s.parent {
		s.correlated = true
	}
}

// finder collects the one column that a name means in a scope.
type finder struct {
	planner *planner
	name    string
	loc     int32
	found   Expr
}

func (f *finder) see(name string, use func() *Slot) error {
	switch {
	case name != f.name:
		return nil
	case f.found != nil:
		return f.planner.errAt(f.loc, pgerr.AmbiguousColumn, "column reference \"%s\" is ambiguous", name)
	}
	f.found = use()
	return nil
}

// findIn looks for a column in one scope: first those that * shows, then the
// system columns.
func (p *planner) findIn(s *scope, qualifier []string, name string, loc int32) (Expr, error) {
	f := &finder{planner: p, name: name, loc: loc}
	err := f.ordinary(s, qualifier)
	if err != nil || f.found != nil {
		return f.found, err
	}
	for _, r := range s.rels {
		if !r.visible || !r.matches(qualifier) {
			continue
		}
		for i := range r.hidden {
			use := func() *Slot {
				sys := p.useHidden(r, i)
				sys.At = p.place(loc)
				return sys
			}
			if err := f.see(r.hidden[i].name, use); err != nil {
				return nil, err
			}
		}
	}
	return f.found, nil
}

func (f *finder) ordinary(s *scope, qualifier []string) error {
	if len(qualifier) == 0 {
		for _, c := range s.columns() {
			if c.merged == nil && !c.rel.visible {
				continue
			}
			if err := f.see(c.name(), func() *Slot { return f.planner.useShown(&c) }); err != nil {
				return err
			}
		}
		return nil
	}
	for _, r := range s.rels {
		if !r.visible || !r.matches(qualifier) {
			continue
		}
		for i := range r.cols {
			if err := f.see(r.cols[i].name, func() *Slot { return f.planner.useColumn(r, i) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rel) matches(qualifier []string) bool {
	if r.inside {
		return false
	}
	switch len(qualifier) {
	case 0:
		return true
	case 1:
		return r.alias == qualifier[0]
	case 2:
		return r.schema == qualifier[0] && r.alias == qualifier[1]
	}
	return false
}

// useColumn returns a reference to column i, giving it a slot on first use.
func (p *planner) useColumn(r *rel, i int) *Slot {
	c := &r.cols[i]
	if c.slot < 0 {
		c.slot = p.newSlot()
		p.owner[c.slot] = r
		switch {
		case r.scan != nil && int(c.attr) > 0:
			r.scan.Slots[c.attr-1] = c.slot
		case r.scan != nil:
			r.scan.Sys.set(c.name, c.slot)
		case r.vscan != nil:
			r.vscan.Slots[i] = c.slot
		case r.fscan != nil:
			r.fscan.Slots[i] = c.slot
		case r.cscan != nil:
			r.cscan.Slots[i] = c.slot
		}
	}
	return NewSlot(c.typ, c.slot, c.name)
}

func (p *planner) useHidden(r *rel, i int) *Slot {
	c := &r.hidden[i]
	if c.slot < 0 {
		c.slot = p.newSlot()
		p.owner[c.slot] = r
		if r.vscan != nil {
			r.vscan.Slots[len(r.cols)+i] = c.slot
		} else {
			r.scan.Sys.set(c.name, c.slot)
		}
	}
	return NewSlot(c.typ, c.slot, c.name)
}

// set assigns the slot of the system column of this name.
func (s *SysSlots) set(name string, slot int) {
	switch name {
	case "xmin":
		s.Xmin = slot
	case "xmax":
		s.Xmax = slot
	case "creator_block":
		s.CreatorBlock = slot
	case "deleter_block":
		s.DeleterBlock = slot
	case "tableoid":
		s.TableOID = slot
	case "ctid":
		s.Ctid = slot
	}
}

func noSysSlots() SysSlots { return SysSlots{-1, -1, -1, -1, -1, -1} }

// systemColumns are the columns that every stored row has besides its own.
func systemColumns() []column {
	return []column{
		{name: "xmin", typ: datum.T(datum.Int8), slot: -1},
		{name: "xmax", typ: datum.T(datum.Int8), slot: -1},
		{name: "creator_block", typ: datum.T(datum.Int8), slot: -1},
		{name: "deleter_block", typ: datum.T(datum.Int8), slot: -1},
		{name: "tableoid", typ: datum.T(datum.OIDType), slot: -1},
	}
}

// wholeRow resolves the name of a FROM item used as a value.
func (p *planner) wholeRow(parts []string, s *scope, loc int32) (Expr, error) {
	if len(parts) > 2 {
		return nil, nil
	}
	for at := s; at != nil; at = at.parent {
		for _, r := range at.rels {
			if r.visible && r.matches(parts) {
				markCorrelated(s, at)
				return p.rowOf(r), nil
			}
		}
	}
	return nil, nil
}

func (p *planner) rowOf(r *rel) Expr {
	if r.fscan != nil && len(r.cols) == 1 {
		return p.useColumn(r, 0)
	}
	row := &Row{}
	var fields []datum.Field
	for i := range r.cols {
		e := p.useColumn(r, i)
		row.Args = append(row.Args, e)
		fields = append(fields, datum.Field{Name: r.cols[i].name, Type: e.Type()})
	}
	row.typ = recordOf(fields)
	if r.row != nil && len(r.row.Fields) == len(fields) {
		row.typ = datum.T(r.row)
	}
	return row
}

func (p *planner) noColumn(parts []string, s *scope, loc int32) error {
	name := parts[len(parts)-1]
	if p.opts.Contract && (name == "ctid" || name == "cmin" || name == "cmax") {
		e := p.errAt(loc, pgerr.FeatureNotSupported, "a contract cannot use system column %s", name).
			WithHint("It says where a node keeps the row: use the primary key.")
		_ = p.refuse(RefusedColumn, e) // there is no value to go on with
		return e
	}
	if len(parts) == 1 {
		e := p.errAt(loc, pgerr.UndefinedColumn, "column \"%s\" does not exist", name)
		return e
	}
	qualifier := parts[:len(parts)-1]
	for at := s; at != nil; at = at.parent {
		for _, r := range at.rels {
			if !r.matches(qualifier) {
				continue
			}
			if !r.visible {
				return p.errAt(loc, pgerr.UndefinedTable, "invalid reference to FROM-clause entry for table \"%s\"", r.alias).
					WithHint("There is an entry for table \"%s\", but it cannot be referenced from this part of the query.", r.alias)
			}
			return p.errAt(loc, pgerr.UndefinedColumn, "column %s does not exist", strings.Join(parts, "."))
		}
	}
	return p.noItem(qualifier, s, loc)
}

// noItem is the error for a qualifier that names no FROM item.
func (p *planner) noItem(qualifier []string, s *scope, loc int32) error {
	for at := s; at != nil; at = at.parent {
		for _, r := range at.rels {
			if len(qualifier) == 1 && r.name == qualifier[0] && r.alias != r.name {
				return p.errAt(loc, pgerr.UndefinedTable, "invalid reference to FROM-clause entry for table \"%s\"", r.name).
					WithHint("Perhaps you meant to reference the table alias \"%s\".", r.alias)
			}
		}
	}
	return p.errAt(loc, pgerr.UndefinedTable, "missing FROM-clause entry for table \"%s\"", qualifier[len(qualifier)-1])
}

// star expands * or qualifier.* into references.
func (p *planner) star(ref *pg.ColumnRef, s *scope) ([]Expr, []column, error) {
	parts, _ := nameParts(ref.Fields)
	var exprs []Expr
	var cols []column
	add := func(r *rel, i int) {
		exprs = append(exprs, p.useColumn(r, i))
		cols = append(cols, r.cols[i])
	}
	if len(parts) == 0 {
		if len(s.rels) == 0 {
			return nil, nil, p.errAt(ref.Location, pgerr.SyntaxError, "SELECT * with no tables specified is not valid")
		}
		for _, c := range s.columns() {
			if c.merged != nil {
				exprs, cols = append(exprs, p.useShown(&c)), append(cols, *c.merged)
			} else {
				add(c.rel, c.col)
			}
		}
		return exprs, cols, nil
	}
	for at := s; at != nil; at = at.parent {
		for _, r := range at.rels {
			if r.visible && r.matches(parts) {
				markCorrelated(s, at)
				for i := range r.cols {
					add(r, i)
				}
				return exprs, cols, nil
			}
		}
	}
	if exprs, cols, err := p.variableStar(parts); exprs != nil || err != nil {
		return exprs, cols, err
	}
	return nil, nil, p.noItem(parts, s, ref.Location)
}

// variableStar expands a row variable of PL/pgSQL.
func (p *planner) variableStar(parts []string) ([]Expr, []column, error) {
	if p.opts.VariableFields == nil || p.stored > 0 {
		return nil, nil, nil
	}
	names, err := p.opts.VariableFields(parts)
	if err != nil {
		return nil, nil, err
	}
	var exprs []Expr
	var cols []column
	for _, name := range names {
		e, err := p.variable(append(slices.Clone(parts), name))
		if err != nil {
			return nil, nil, err
		}
		exprs, cols = append(exprs, e), append(cols, column{name: name, typ: e.Type()})
	}
	return exprs, cols, nil
}
