package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// item is one operand of a join that is still to be ordered: a FROM item, or
// an outer join that was planned as a whole.
type item struct {
	rels []*rel
	base *rel // a single rel whose access path is open; nil if node is set
	node Node
	rows float64
	// needs are the rels that a LATERAL item refers to.
	needs []*rel
}

// from analyzes the FROM list. Items go into s; the result are the operands of
// the (inner) join of all of them and the conditions of inner joins.
func (p *planner) from(list []*pg.Node, s *scope) ([]item, []Expr, error) {
	var items []item
	var conds []Expr
	for _, n := range list {
		more, on, err := p.fromItem(n, s)
		if err != nil {
			return nil, nil, err
		}
		items, conds = append(items, more...), append(conds, on...)
	}
	for _, r := range s.rels {
		r.visible = true
	}
	return items, conds, nil
}

func (p *planner) fromItem(n *pg.Node, s *scope) ([]item, []Expr, error) {
	if err := p.enter(); err != nil {
		return nil, nil, err
	}
	defer p.leave()
	var it item
	var err error
	switch n := n.Node.(type) {
	case *pg.Node_RangeVar:
		it, err = p.rangeVar(n.RangeVar, s)
	case *pg.Node_RangeSubselect:
		it, err = p.rangeSubselect(n.RangeSubselect, s)
	case *pg.Node_RangeFunction:
		it, err = p.rangeFunction(n.RangeFunction, s)
	case *pg.Node_JoinExpr:
		return p.joinExpr(n.JoinExpr, s)
	case *pg.Node_RangeTableSample:
		err = pgerr.NotBuilt("TABLESAMPLE is not supported")
	default:
		err = pgerr.NotBuilt("this kind of FROM item is not supported")
	}
	if err != nil {
		return nil, nil, err
	}
	return []item{it}, nil, nil
}

// addRel puts an item into the scope; two of one name are an error.
func (p *planner) addRel(r *rel, s *scope) error {
	for _, o := range s.rels {
		if o.alias == r.alias && o.alias != "" && (o.schema == r.schema || r.schema == "" || o.schema == "") {
			return pgerr.New(pgerr.DuplicateAlias, "table name \"%s\" specified more than once", r.alias)
		}
	}
	r.id = len(s.rels)
	s.rels = append(s.rels, r)
	return nil
}

// rangeVar is a table, a view, a computed relation or a WITH query.
func (p *planner) rangeVar(v *pg.RangeVar, s *scope) (item, error) {
	if v.Schemaname == "" {
		if c := s.findCTE(v.Relname); c != nil {
			return p.cteItem(c, v, s)
		}
	}
	if v.Catalogname != "" && v.Catalogname != "tallystick" {
		return item{}, p.errAt(v.Location, pgerr.FeatureNotSupported, "cross-database references are not implemented: \"%s.%s.%s\"", v.Catalogname, v.Schemaname, v.Relname)
	}
	t, provenance, err := p.findTable(v)
	if err != nil {
		return item{}, err
	}
	if t == nil {
		return p.virtualItem(v, s)
	}
	if t.Kind == catalog.View {
		return p.viewItem(t, v, s)
	}
	if t.Kind == catalog.Sequence {
		if p.opts.Sequence == nil {
			return item{}, p.at(pgerr.NotBuilt("reading sequence \"%s\" here is not supported", t.Name), v.Location)
		}
		return p.computedItem(p.opts.Sequence(t), t.Schema, v, s)
	}
	r := p.tableRel(t, provenance)
	if v.Alias == nil {
		r.schema = t.Schema
		if provenance {
			r.schema = catalog.Provenance
		}
	}
	if err := p.nameRel(r, v.Relname, v.Alias); err != nil {
		return item{}, err
	}
	if err := p.addRel(r, s); err != nil {
		return item{}, err
	}
	return item{rels: []*rel{r}, base: r}, nil
}

// tableRel makes the item of a stored table; slots are given out on use.
func (p *planner) tableRel(t *catalog.Table, provenance bool) *rel {
	scan := &Scan{Table: t, Index: t.Primary(), Slots: make([]int, len(t.Columns)), Sys: noSysSlots(), Provenance: provenance}
	r := &rel{table: t, scan: scan}
	for i := range t.Columns {
		scan.Slots[i] = -1
		c := &t.Columns[i]
		if !c.Dropped {
			r.cols = append(r.cols, column{name: c.Name, typ: c.Type, slot: -1, table: t.OID, attr: int16(i + 1)})
		}
	}
	for _, c := range systemColumns() {
		if provenance && c.name != "tableoid" {
			r.cols = append(r.cols, c)
		} else {
			r.hidden = append(r.hidden, c)
		}
	}
	return r
}

// nameRel applies an alias with optional column names.
func (p *planner) nameRel(r *rel, name string, alias *pg.Alias) error {
	r.alias, r.name = name, name
	if alias == nil {
		return nil
	}
	r.alias = alias.Aliasname
	names, _ := nameParts(alias.Colnames)
	if len(names) > len(r.cols) {
		return pgerr.New(pgerr.InvalidColumnReference, "table \"%s\" has %d columns available but %d columns specified", r.alias, len(r.cols), len(names))
	}
	for i, n := range names {
		r.cols[i].name = n
	}
	return nil
}

// findTable looks a table up along the search path. A nil table without error
// means that no stored table has the name.
func (p *planner) findTable(v *pg.RangeVar) (t *catalog.Table, provenance bool, err error) {
	if p.opts.Catalog == nil {
		return nil, false, nil
	}
	schemas := p.opts.SearchPath
	if v.Schemaname != "" {
		schemas = []string{v.Schemaname}
	}
	for _, schema := range schemas {
		from := schema
		if schema == catalog.Provenance {
			from, provenance = catalog.Blockchain, true
		}
		t, ok := p.opts.Catalog.Table(from, v.Relname)
		if ok && !(provenance && t.Kind == catalog.View) {
			p.note(t.Reads())
			return t, provenance, p.admitTable(t, provenance, v.Location)
		}
		p.note(catalog.MissingTable(from, v.Relname))
		provenance = false
	}
	return nil, false, nil
}

// admitTable refuses in a contract what is not part of the replicated state at
// a height.
func (p *planner) admitTable(t *catalog.Table, provenance bool, loc int32) error {
	if !p.opts.Contract {
		return nil
	}
	if provenance {
		return p.errAt(loc, pgerr.FeatureNotSupported, "a contract cannot read provenance.%s", t.Name).
			WithHint("Keep what the contract needs in a table of its own.")
	}
	if t.Schema == catalog.Private {
		return p.errAt(loc, pgerr.FeatureNotSupported, "a contract cannot read private.%s", t.Name).
			WithHint("Private tables differ between organizations: pass the values as arguments.")
	}
	return nil
}

func (p *planner) undefinedTable(v *pg.RangeVar) error {
	name := v.Relname
	if v.Schemaname != "" {
		name = v.Schemaname + "." + name
	}
	return p.errAt(v.Location, pgerr.UndefinedTable, "relation \"%s\" does not exist", name)
}

func (p *planner) virtualItem(v *pg.RangeVar, s *scope) (item, error) {
	if p.opts.Virtual == nil {
		return item{}, p.undefinedTable(v)
	}
	schemas := []string{v.Schemaname}
	if v.Schemaname == "" {
		schemas = []string{catalog.PgCatalog}
		schemas = append(schemas, p.opts.SearchPath...)
	}
	for _, schema := range schemas {
		rv := p.opts.Virtual(schema, v.Relname)
		if rv == nil {
			continue
		}
		if p.opts.Contract {
			return item{}, p.errAt(v.Location, pgerr.FeatureNotSupported, "a contract cannot read %s.%s", rv.Schema, rv.Name)
		}
		return p.computedItem(rv, schema, v, s)
	}
	return item{}, p.undefinedTable(v)
}

// computedItem is a computed relation in FROM.
func (p *planner) computedItem(rv *Virtual, schema string, v *pg.RangeVar, s *scope) (item, error) {
	r := &rel{vscan: &VirtualScan{Relation: rv, Slots: make([]int, len(rv.Columns))}}
	for i, c := range rv.Columns {
		r.vscan.Slots[i] = -1
		col := column{name: c.Name, typ: c.Type, slot: -1}
		if c.Hidden { // hidden ones come last
			r.hidden = append(r.hidden, col)
		} else {
			r.cols = append(r.cols, col)
		}
	}
	if v.Alias == nil {
		r.schema = schema
	}
	if err := p.nameRel(r, v.Relname, v.Alias); err != nil {
		return item{}, err
	}
	return item{rels: []*rel{r}, base: r}, p.addRel(r, s)
}

// viewItem plans the query of a view in its own name space.
func (p *planner) viewItem(t *catalog.Table, v *pg.RangeVar, s *scope) (item, error) {
	st, err := parse.One(t.Query)
	if err != nil {
		return item{}, err
	}
	var q *query
	err = p.inStored(func() error {
		q, err = p.selectStmt(st.Node.GetSelectStmt(), &scope{})
		return err
	})
	if err != nil {
		return item{}, err
	}
	r := &rel{cols: slices.Clone(q.cols)}
	for i := range r.cols {
		r.cols[i].name = t.Columns[i].Name
		r.cols[i].table, r.cols[i].attr = t.OID, int16(i+1)
		p.owner[r.cols[i].slot] = r
	}
	if err := p.nameRel(r, v.Relname, v.Alias); err != nil {
		return item{}, err
	}
	return item{rels: []*rel{r}, node: q.node, rows: estimate(q.node)}, p.addRel(r, s)
}

// rangeSubselect is (SELECT ...) AS alias.
func (p *planner) rangeSubselect(n *pg.RangeSubselect, s *scope) (item, error) {
	inner, seen := p.itemScope(n.Lateral, s)
	q, err := p.selectStmt(n.Subquery.GetSelectStmt(), inner)
	if err != nil {
		return item{}, err
	}
	s.absorbItem(inner, n.Lateral)
	if err := p.settleUnknown(q); err != nil {
		return item{}, err
	}
	r := &rel{cols: slices.Clone(q.cols), lateral: n.Lateral}
	p.own(r)
	alias := ""
	if n.Alias != nil {
		alias = n.Alias.Aliasname
	}
	if err := p.nameRel(r, alias, n.Alias); err != nil {
		return item{}, err
	}
	it := item{rels: []*rel{r}, node: q.node, rows: estimate(q.node), needs: p.needs(q.node, seen)}
	return it, p.addRel(r, s)
}

// own makes r the owner of the slots of its columns.
func (p *planner) own(r *rel) {
	for _, c := range r.cols {
		if c.slot >= 0 {
			p.owner[c.slot] = r
		}
	}
}

// itemScope is the scope in which a FROM item is analyzed: its siblings to the
// left can be seen only through LATERAL.
func (p *planner) itemScope(lateral bool, s *scope) (*scope, []*rel) {
	if !lateral {
		return &scope{parent: s.parent, ctes: s.ctes}, nil
	}
	beside := &scope{parent: s.parent, rels: s.rels, usings: s.usings, ctes: s.ctes}
	for _, r := range s.rels {
		r.visible = true
	}
	return beside.child(), s.rels
}

// absorbItem takes over what was found while an item was analyzed in the scope
// that itemScope made: for a LATERAL item only what went past its siblings.
func (s *scope) absorbItem(in *scope, lateral bool) {
	if lateral {
		s.volatile = s.volatile || in.volatile
		in = in.parent
	}
	s.absorb(in)
}

// needs finds the siblings whose slots a planned LATERAL item reads.
func (p *planner) needs(n Node, siblings []*rel) []*rel {
	var out []*rel
	walkNode(n, func(e Expr) {
		if sl, ok := e.(*Slot); ok {
			r := p.owner[sl.Index]
			if r != nil && slices.Contains(siblings, r) && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	})
	return out
}

// rangeFunction is a function in FROM; it may always refer to its siblings.
func (p *planner) rangeFunction(n *pg.RangeFunction, s *scope) (item, error) {
	if n.IsRowsfrom || len(n.Functions) != 1 {
		return item{}, pgerr.NotBuilt("ROWS FROM is not supported")
	}
	if len(n.Coldeflist) > 0 {
		return item{}, pgerr.NotBuilt("a column definition list is not supported")
	}
	inner, siblings := p.itemScope(true, s)
	fn := n.Functions[0].GetList().Items[0]
	name, scan, cols, err := p.functionScan(fn, inner)
	if err != nil {
		return item{}, err
	}
	s.absorbItem(inner, true)
	scan.Ordinality = -1
	r := &rel{cols: cols, fscan: scan}
	if n.Ordinality {
		scan.Ordinality = p.newSlot()
		r.cols = append(r.cols, column{name: "ordinality", typ: datum.T(datum.Int8), slot: scan.Ordinality})
	}
	if n.Alias != nil && len(cols) == 1 && len(n.Alias.Colnames) == 0 && !namedColumns(scan) {
		r.cols[0].name = n.Alias.Aliasname
	}
	p.own(r)
	if err := p.nameRel(r, name, n.Alias); err != nil {
		return item{}, err
	}
	it := item{rels: []*rel{r}, node: scan, rows: 100, needs: p.needs(scan, siblings)}
	return it, p.addRel(r, s)
}

// namedColumns tells that a function names its single column itself.
func namedColumns(f *FuncScan) bool {
	return f.Builtin != nil && f.Builtin.Columns != nil || f.User != nil && len(f.User.OutArgs()) > 0
}

func (p *planner) functionScan(fn *pg.Node, s *scope) (string, *FuncScan, []column, error) {
	call := fn.GetFuncCall()
	if call == nil {
		e, err := p.expr(fn, s, "functions in FROM")
		if err != nil {
			return "", nil, nil, err
		}
		slot := p.newSlot()
		name := figureName(fn)
		return name, &FuncScan{Value: e, Slots: []int{slot}}, []column{{name: name, typ: e.Type(), slot: slot}}, nil
	}
	name := funcName(call)
	if parts, _ := nameParts(call.Funcname); name == "unnest" && len(call.Args) > 1 && (len(parts) == 1 || parts[0] == catalog.PgCatalog) {
		scan, cols, err := p.unnestTogether(call, s)
		if err != nil {
			return "", nil, nil, err
		}
		return name, scan, p.fillScan(scan, cols), nil
	}
	c, err := p.resolveCall(call, s, "functions in FROM")
	if err != nil {
		return "", nil, nil, err
	}
	if c.builtin != nil && c.builtin.Kind != builtin.Scalar {
		return "", nil, nil, p.errAt(call.Location, pgerr.GroupingError, "aggregate functions are not allowed in functions in FROM")
	}
	scan, cols, err := p.bindScan(c, name, s, call.Location)
	if err != nil {
		return "", nil, nil, err
	}
	return name, scan, p.fillScan(scan, cols), nil
}

// fillScan gives every column of a function scan its slot.
func (p *planner) fillScan(scan *FuncScan, cols []column) []column {
	for i := range cols {
		cols[i].slot = p.newSlot()
		scan.Slots = append(scan.Slots, cols[i].slot)
	}
	return cols
}

// bindScan decides how a resolved function is read as rows.
func (p *planner) bindScan(c *callee, name string, s *scope, loc int32) (*FuncScan, []column, error) {
	if c.user != nil {
		if c.user.Kind == catalog.Procedure {
			return nil, nil, p.errAt(loc, pgerr.WrongObjectType, "%s(%s) is a procedure", c.user.Name, c.user.Signature()).
				WithHint("To call a procedure, use CALL.")
		}
		if c.user.Volatility == "v" {
			s.markVolatile()
		}
		return &FuncScan{User: c.user, Args: c.args}, userColumns(c.user), nil
	}
	if !c.builtin.RetSet {
		e, err := p.finishCall(c, s, loc)
		if err != nil {
			return nil, nil, err
		}
		return &FuncScan{Value: e}, []column{{name: name, typ: c.ret}}, nil
	}
	if err := p.admit(c.builtin, loc); err != nil {
		return nil, nil, err
	}
	set, outs, err := c.builtin.BindRows(exprTypes(c.args), c.ret)
	if err != nil {
		return nil, nil, p.locate(err, loc)
	}
	var cols []column
	for _, o := range outs {
		cols = append(cols, column{name: o.Name, typ: o.Type})
	}
	return &FuncScan{Builtin: c.builtin, Set: set, Args: c.args}, cols, nil
}

// userColumns are the columns of a user's function read in FROM.
func userColumns(f *catalog.Func) []column {
	outs := f.OutArgs()
	if len(outs) == 0 {
		return []column{{name: f.Name, typ: f.Ret}}
	}
	cols := make([]column, len(outs))
	for i, a := range outs {
		name := a.Name
		if name == "" {
			name = "column" + itoa(i+1)
		}
		cols[i] = column{name: name, typ: a.Type}
	}
	return cols
}

// joinExpr is a JOIN written out.
func (p *planner) joinExpr(j *pg.JoinExpr, s *scope) ([]item, []Expr, error) {
	firstRel := len(s.rels)
	left, conds, err := p.fromItem(j.Larg, s)
	if err != nil {
		return nil, nil, err
	}
	middle := len(s.rels)
	right, more, err := p.fromItem(j.Rarg, s)
	if err != nil {
		return nil, nil, err
	}
	leftRels, rightRels := s.rels[firstRel:middle], s.rels[middle:]
	on, merged, err := p.joinCondition(j, s, leftRels, rightRels)
	if err != nil {
		return nil, nil, err
	}
	if j.Alias != nil {
		return nil, nil, pgerr.NotBuilt("an alias for a whole join is not supported")
	}
	kind := joinKind(j.Jointype)
	if kind == InnerJoin {
		s.usings = append(s.usings, merged...)
		return append(left, right...), append(append(conds, more...), on...), nil
	}
	it, err := p.outerJoin(kind, left, conds, right, more, on)
	if err != nil {
		return nil, nil, err
	}
	if kind == FullJoin && len(merged) > 0 {
		return nil, nil, pgerr.NotBuilt("FULL JOIN with USING is not supported")
	}
	s.usings = append(s.usings, merged...)
	return []item{it}, nil, nil
}

func joinKind(t pg.JoinType) JoinKind {
	switch t {
	case pg.JoinType_JOIN_LEFT:
		return LeftJoin
	case pg.JoinType_JOIN_RIGHT:
		return RightJoin
	case pg.JoinType_JOIN_FULL:
		return FullJoin
	}
	return InnerJoin
}

// joinCondition analyzes ON, USING or NATURAL. merged are the columns that
// USING shows once.
func (p *planner) joinCondition(j *pg.JoinExpr, s *scope, left, right []*rel) (on []Expr, merged []column, err error) {
	beside := &scope{parent: s.parent, rels: slices.Concat(left, right), ctes: s.ctes, noAggs: "JOIN conditions"}
	for _, r := range beside.rels {
		r.visible = true
	}
	names, _ := nameParts(j.UsingClause)
	if j.IsNatural {
		names = commonNames(left, right)
	}
	if j.Quals != nil {
		beside.usings = s.usings
		e, err := p.condition(j.Quals, beside, "JOIN/ON")
		s.absorb(beside)
		return conjuncts(e), nil, err
	}
	for _, name := range names {
		e, c, err := p.usingColumn(name, s, left, right, joinKind(j.Jointype))
		if err != nil {
			return nil, nil, err
		}
		on, merged = append(on, e), append(merged, c)
	}
	return on, merged, nil
}

func commonNames(left, right []*rel) []string {
	var names []string
	for _, l := range left {
		for i, c := range l.cols {
			if l.merged[i] {
				continue
			}
			for _, r := range right {
				if slices.ContainsFunc(r.cols, func(d column) bool { return d.name == c.name }) {
					names = append(names, c.name)
				}
			}
		}
	}
	return names
}

func (p *planner) usingColumn(name string, s *scope, left, right []*rel, kind JoinKind) (Expr, column, error) {
	find := func(rels []*rel, side string) (*Slot, *rel, int, error) {
		for _, r := range rels {
			for i := range r.cols {
				if r.cols[i].name == name && !r.merged[i] {
					return p.useColumn(r, i), r, i, nil
				}
			}
		}
		return nil, nil, 0, pgerr.New(pgerr.UndefinedColumn, "column \"%s\" specified in USING clause does not exist in %s table", name, side)
	}
	var l *Slot
	if u := slices.IndexFunc(s.usings, func(c column) bool { return c.name == name }); u >= 0 {
		l = NewSlot(s.usings[u].typ, s.usings[u].slot, name)
		s.usings = slices.Delete(s.usings, u, u+1)
	} else {
		var lr *rel
		var li int
		var err error
		if l, lr, li, err = find(left, "left"); err != nil {
			return nil, column{}, err
		}
		lr.merge(li)
	}
	r, rr, ri, err := find(right, "right")
	if err != nil {
		return nil, column{}, err
	}
	rr.merge(ri)
	e, err := p.operator("=", l, r, -1)
	if err != nil {
		return nil, column{}, err
	}
	keep := l
	if kind == RightJoin {
		keep = r
	}
	return e, column{name: name, typ: keep.typ, slot: keep.Index}, nil
}

func (r *rel) merge(i int) {
	if r.merged == nil {
		r.merged = map[int]bool{}
	}
	r.merged[i] = true
}
