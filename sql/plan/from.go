package plan

import (
	"slices"
	"strings"

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
	base *rel // a single rel whose access path is open; nil otherwise
	node Node
	rows float64
	// outer is an outer join that is planned when the conditions around it are
	// known.
	outer *outerJoin
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
	reveal(s.rels)
	return items, conds, nil
}

// reveal lets names find items.
func reveal(rels []*rel) {
	for _, r := range rels {
		r.visible = !r.inside
	}
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
		return p.rangeVar(n.RangeVar, s)
	case *pg.Node_RangeSubselect:
		return p.rangeSubselect(n.RangeSubselect, s)
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
		if o.alias == r.alias && o.alias != "" && !o.inside && (o.schema == r.schema || r.schema == "" || o.schema == "") {
			return pgerr.New(pgerr.DuplicateAlias, "table name \"%s\" specified more than once", r.alias)
		}
	}
	r.id = len(s.rels)
	s.rels = append(s.rels, r)
	s.shown = append(s.shown, columnsOf(r)...)
	return nil
}

// rangeVar is a table, a view, a computed relation or a WITH query.
func (p *planner) rangeVar(v *pg.RangeVar, s *scope) ([]item, []Expr, error) {
	if v.Schemaname == "" {
		if c := s.findCTE(v.Relname); c != nil {
			return alone(p.cteItem(c, v, s))
		}
	}
	if v.Catalogname != "" && v.Catalogname != "tallystick" {
		return nil, nil, p.errAt(v.Location, pgerr.FeatureNotSupported, "cross-database references are not implemented: \"%s.%s.%s\"", v.Catalogname, v.Schemaname, v.Relname)
	}
	t, provenance, err := p.findTable(v)
	if err != nil {
		return nil, nil, err
	}
	if t == nil {
		return alone(p.virtualItem(v, s))
	}
	if t.Kind == catalog.View {
		return p.viewItem(t, v, s)
	}
	if t.Kind == catalog.Sequence {
		if p.opts.Sequence == nil {
			return nil, nil, p.at(pgerr.NotBuilt("reading sequence \"%s\" here is not supported", t.Name), v.Location)
		}
		return alone(p.computedItem(p.opts.Sequence(t), t.Schema, v, s))
	}
	if t.Unpopulated {
		return nil, nil, p.errAt(-1, pgerr.ObjectNotInPrerequisiteState, "materialized view \"%s\" has not been populated", t.Name).
			WithHint("Use the REFRESH MATERIALIZED VIEW command.")
	}
	return alone(p.tableItem(t, provenance, v, s))
}

// tableItem puts a stored table into the scope.
func (p *planner) tableItem(t *catalog.Table, provenance bool, v *pg.RangeVar, s *scope) (item, error) {
	r := p.tableRel(t, provenance)
	if err := p.secure(r, catalog.PolicySelect); err != nil {
		return item{}, err
	}
	r.scan.At, r.scan.Through = p.place(v.Location), slices.Clone(p.views)
	if v.Alias == nil {
		r.schema = t.Schema
		if provenance {
			r.schema = catalog.Provenance
		}
	}
	if err := p.nameRel(r, v.Relname, v.Alias); err != nil {
		return item{}, err
	}
	return item{rels: []*rel{r}, base: r}, p.addRel(r, s)
}

// alone makes a list of one item.
func alone(it item, err error) ([]item, []Expr, error) {
	return []item{it}, nil, err
}

// tableRel makes the item of a stored table; slots are given out on use.
func (p *planner) tableRel(t *catalog.Table, provenance bool) *rel {
	scan := &Scan{Table: t, Index: t.Primary(), Slots: make([]int, len(t.Columns)), Sys: noSysSlots(), Provenance: provenance}
	r := &rel{table: t, scan: scan}
	if !provenance {
		r.row = t.Row
	}
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
	defer r.labelNode()
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
	if catalog.IsTemp(t.Schema) && p.opts.Catalog.TempSchema() != t.Schema {
		return p.errAt(loc, pgerr.FeatureNotSupported, "cannot access temporary tables of other sessions")
	}
	if !p.opts.Contract {
		return nil
	}
	if provenance {
		return p.refuse(RefusedRelation, p.errAt(loc, pgerr.FeatureNotSupported, "a contract cannot read provenance.%s", t.Name).
			WithHint("Keep what the contract needs in a table of its own."))
	}
	if t.Local() {
		return p.refuse(RefusedRelation, p.errAt(loc, pgerr.FeatureNotSupported, "a contract cannot read %s.%s", t.Schema, t.Name).
			WithHint("Private tables differ between organizations: pass the values as arguments."))
	}
	return nil
}

func (p *planner) undefinedTable(v *pg.RangeVar) error {
	name := v.Relname
	if v.Schemaname != "" {
		name = v.Schemaname + "." + name
	}
	if p.opts.Contract && catalog.IsLocal(v.Schemaname) {
		e := p.errAt(v.Location, pgerr.FeatureNotSupported, "a contract cannot read private.%s", v.Relname).
			WithHint("Private tables differ between organizations: pass the values as arguments.")
		_ = p.refuse(RefusedRelation, e) // there is no table to go on with
		return e
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
			err := p.refuse(RefusedRelation, p.errAt(v.Location, pgerr.FeatureNotSupported, "a contract cannot read %s.%s", rv.Schema, rv.Name).
				WithHint("It describes the node or the catalog: pass the values as arguments."))
			if err != nil {
				return item{}, err
			}
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
func (p *planner) viewItem(t *catalog.Table, v *pg.RangeVar, s *scope) ([]item, []Expr, error) {
	st, err := parse.One(t.Query)
	if err != nil {
		return nil, nil, err
	}
	var src *source
	p.views = append(p.views, t)
	defer p.withPath(t.Path)()
	err = p.inStored(func() error {
		src, err = p.subquerySource(st.Node.GetSelectStmt(), &scope{})
		return err
	})
	p.views = p.views[:len(p.views)-1]
	if err != nil {
		return nil, nil, err
	}
	for i := range src.cols {
		src.cols[i].name, src.cols[i].table, src.cols[i].attr = t.Columns[i].Name, t.OID, int16(i+1)
	}
	return p.sourceItems(src, &rel{row: t.Row}, v.Relname, v.Alias, nil, s)
}

// withPath resolves names as the definition of a view did until the function
// that it returns is called; without a path that is the default one.
func (p *planner) withPath(path []string) (restore func()) {
	if path == nil {
		if p.opts.Contract {
			return func() {}
		}
		path = []string{catalog.Blockchain, catalog.Private}
	}
	outer := p.opts
	inner := *outer
	inner.SearchPath = path
	p.opts = &inner
	return func() { p.opts = outer }
}

// rangeSubselect is (SELECT ...) AS alias.
func (p *planner) rangeSubselect(n *pg.RangeSubselect, s *scope) ([]item, []Expr, error) {
	inner, seen := p.itemScope(n.Lateral, s)
	var src *source
	var err error
	sel := n.Subquery.GetSelectStmt()
	if n.Lateral {
		var q *query
		if q, err = p.selectStmt(sel, inner); err == nil {
			src, err = p.plannedSource(q)
		}
	} else {
		src, err = p.subquerySource(sel, inner)
	}
	if err != nil {
		return nil, nil, err
	}
	s.absorbItem(inner, n.Lateral)
	alias := ""
	if n.Alias != nil {
		alias = n.Alias.Aliasname
	}
	return p.sourceItems(src, &rel{lateral: n.Lateral}, alias, n.Alias, seen, s)
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
	beside := &scope{parent: s.parent, rels: s.rels, shown: s.shown, ctes: s.ctes}
	reveal(s.rels)
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
	inner, siblings := p.itemScope(true, s)
	var name string
	var scan *FuncScan
	var cols []column
	var err error
	if len(n.Functions) > 1 {
		name, scan, cols, err = p.rowsFrom(n, inner)
	} else {
		items, defs := n.Functions[0].GetList().Items, n.Coldeflist
		if len(items) > 1 && len(defs) == 0 {
			defs = items[1].GetList().GetItems()
		} else if len(defs) > 0 && n.Ordinality {
			return item{}, pgerr.New(pgerr.SyntaxError, "WITH ORDINALITY cannot be used with a column definition list").
				WithHint("Put the column definition list inside ROWS FROM().")
		}
		name, scan, cols, err = p.functionScan(items[0], inner, defs)
	}
	if err != nil {
		return item{}, err
	}
	s.absorbItem(inner, true)
	scan.Ordinality = -1
	r := &rel{cols: cols, fscan: scan}
	if scan.User != nil && len(scan.User.OutArgs()) == 0 && namedComposite(scan.User.Ret) {
		r.row = scan.User.Ret.Desc
	}
	if n.Ordinality {
		scan.Ordinality = p.newSlot()
		r.cols = append(r.cols, column{name: "ordinality", typ: datum.T(datum.Int8), slot: scan.Ordinality})
	}
	if n.Alias != nil && len(cols) == 1 && len(n.Coldeflist) == 0 && !n.IsRowsfrom && len(n.Alias.Colnames) == 0 && !namedColumns(scan) {
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

func (p *planner) functionScan(fn *pg.Node, s *scope, defs []*pg.Node) (string, *FuncScan, []column, error) {
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
	scan, cols, err := p.bindScan(c, name, s, defs, call.Location)
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
func (p *planner) bindScan(c *callee, name string, s *scope, defs []*pg.Node, loc int32) (*FuncScan, []column, error) {
	fields, err := p.definitionList(c, defs, loc)
	if err != nil {
		return nil, nil, err
	}
	if fields != nil && c.builtin != nil {
		set, err := c.builtin.BindColumns(builtinColumns(fields))
		if err != nil {
			return nil, nil, p.locate(err, loc)
		}
		return &FuncScan{Builtin: c.builtin, Set: set, Args: c.args}, fieldColumns(fields), nil
	}
	if fields != nil {
		c.user = withShape(c.user, fields)
	}
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
		if fields := e.Type().Root().Fields; len(fields) > 0 {
			return &FuncScan{Value: e}, fieldColumns(fields), nil
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
	if len(outs) == 0 && f.Ret.Desc != nil && len(f.Ret.Root().Fields) > 0 {
		return fieldColumns(f.Ret.Root().Fields)
	}
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

// labelNode tells the node that reads r the name that the statement uses for it.
func (r *rel) labelNode() {
	switch {
	case r.scan != nil:
		r.scan.Alias = r.alias
	case r.vscan != nil:
		r.vscan.Alias = r.alias
	case r.fscan != nil:
		r.fscan.Alias = r.alias
	case r.cscan != nil:
		r.cscan.Alias = r.alias
	}
}

func builtinColumns(fields []datum.Field) []builtin.Column {
	cols := make([]builtin.Column, len(fields))
	for i, f := range fields {
		cols[i] = builtin.Column{Name: f.Name, Type: f.Type}
	}
	return cols
}

func fieldColumns(fields []datum.Field) []column {
	cols := make([]column, len(fields))
	for i, f := range fields {
		cols[i] = column{name: f.Name, typ: f.Type}
	}
	return cols
}

// definitionList reads the column definition list that a function returning
// record needs in FROM; nil for all other functions.
func (p *planner) definitionList(c *callee, defs []*pg.Node, loc int32) ([]datum.Field, error) {
	outs, ret := 0, c.ret
	if c.user != nil {
		outs, ret = len(c.user.OutArgs()), c.user.Ret
	}
	anonymous := outs == 0 && ret.Desc == datum.Record && !(c.builtin != nil && c.builtin.Columns != nil)
	switch {
	case len(defs) == 0 && anonymous && (c.user != nil || strings.HasSuffix(c.builtin.Name, "_to_record") || strings.HasSuffix(c.builtin.Name, "_to_recordset")):
		return nil, p.errAt(loc, pgerr.SyntaxError, "a column definition list is required for functions returning \"record\"")
	case len(defs) == 0:
		return nil, nil
	case outs > 0:
		return nil, p.errAt(loc, pgerr.SyntaxError, "a column definition list is redundant for a function with OUT parameters")
	case namedComposite(ret):
		return nil, p.errAt(loc, pgerr.SyntaxError, "a column definition list is redundant for a function returning a named composite type")
	case !anonymous:
		return nil, p.errAt(loc, pgerr.SyntaxError, "a column definition list is only allowed for functions returning \"record\"")
	}
	var fields []datum.Field
	for _, n := range defs {
		def := n.GetColumnDef()
		t, err := p.typeName(def.TypeName)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			if f.Name == def.Colname {
				return nil, p.errAt(def.Location, pgerr.DuplicateColumn, "column name \"%s\" specified more than once", def.Colname)
			}
		}
		fields = append(fields, datum.Field{Name: def.Colname, Type: t})
	}
	return fields, nil
}
