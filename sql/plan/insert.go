package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// insertStmt plans INSERT.
func (p *planner) insertStmt(n *pg.InsertStmt, s *scope) (*query, error) {
	finish, err := p.with(n.WithClause, s)
	if err != nil {
		return nil, err
	}
	t, err := p.writable(n.Relation, "INSERT")
	if err != nil {
		return nil, err
	}
	outer, parts := p.override, p.parts
	p.override, p.parts = n.Override, nil
	defer func() { p.override, p.parts = outer, parts }()
	into, err := p.insertColumns(n, t)
	if err != nil {
		return nil, err
	}
	m := &Modify{Kind: Insert, Table: t, NewSlots: p.newSlots(len(t.Columns))}
	values, err := p.insertSource(n, t, into, m, s)
	if err != nil {
		return nil, err
	}
	if err := p.newRow(m, into, values, s); err != nil {
		return nil, err
	}
	if err := p.rowRules(m); err != nil {
		return nil, err
	}
	name := n.Relation.Relname
	if n.Relation.Alias != nil {
		name = n.Relation.Alias.Aliasname
	}
	fresh := p.slotsRel(t, name, m.NewSlots)
	if err := p.onConflict(n.OnConflictClause, m, name, s); err != nil {
		return nil, err
	}
	if err := p.secureRows(m, catalog.PolicyInsert, len(n.ReturningList) > 0); err != nil {
		return nil, err
	}
	if err := p.secureConflict(m); err != nil {
		return nil, err
	}
	events := []string{"INSERT"}
	if m.Conflict != nil && m.Conflict.Set != nil {
		events = append(events, "UPDATE")
	}
	if err := p.triggers(m, events...); err != nil {
		return nil, err
	}
	q, err := p.returning(m, n.ReturningList, &scope{parent: s.parent, rels: []*rel{fresh}, ctes: s.ctes, noAggs: "RETURNING"})
	if err != nil {
		return nil, err
	}
	return finish(q), nil
}

// writable finds the target of a data modification.
func (p *planner) writable(v *pg.RangeVar, verb string) (*catalog.Table, error) {
	p.writes = true
	t, provenance, err := p.findTable(v)
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		if p.opts.Virtual != nil {
			if _, err := p.virtualItem(v, &scope{}); err == nil {
				return nil, p.errAt(v.Location, pgerr.InsufficientPrivilege, "permission denied: \"%s\" is a system catalog modification", v.Relname)
			}
		}
		return nil, p.undefinedTable(v)
	case provenance:
		return nil, p.errAt(v.Location, pgerr.InsufficientPrivilege, "cannot change history: provenance.%s is read-only", t.Name)
	case t.System:
		return nil, p.errAt(v.Location, pgerr.InsufficientPrivilege, "cannot change \"%s\": the ledger itself writes this table", t.Name).
			WithHint("Its rows follow from the blocks; users are changed with create_user, update_user and delete_user.")
	case t.Kind == catalog.View:
		e := p.errAt(v.Location, pgerr.ObjectNotInPrerequisiteState, "cannot %s view \"%s\"", verbOn[verb], t.Name)
		return nil, e.WithHint("Change the tables that the view reads.")
	case t.Kind == catalog.MaterializedView:
		return nil, p.errAt(v.Location, pgerr.WrongObjectType, "cannot change materialized view \"%s\"", t.Name)
	case t.Kind == catalog.Sequence:
		return nil, p.errAt(v.Location, pgerr.WrongObjectType, "cannot change sequence \"%s\"", t.Name)
	}
	p.writesChain = p.writesChain || !t.Local()
	return t, nil
}

var verbOn = map[string]string{"INSERT": "insert into", "UPDATE": "update", "DELETE": "delete from"}

func (p *planner) newSlots(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = p.newSlot()
	}
	return out
}

// slotsRel is an item whose columns are given slots: a new or an old row.
func (p *planner) slotsRel(t *catalog.Table, name string, slots []int) *rel {
	r := &rel{alias: name, table: t, row: t.Row, visible: true}
	for i := range t.Columns {
		if c := &t.Columns[i]; !c.Dropped {
			r.cols = append(r.cols, column{name: c.Name, typ: c.Type, slot: slots[i], table: t.OID, attr: int16(i + 1)})
		}
	}
	return r
}

// insertColumns returns the positions of the columns that values go to.
func (p *planner) insertColumns(n *pg.InsertStmt, t *catalog.Table) ([]int, error) {
	var into []int
	if len(n.Cols) == 0 {
		for i := range t.Columns {
			if !t.Columns[i].Dropped {
				into = append(into, i)
			}
		}
		return into, nil
	}
	whole := make([]bool, len(t.Columns))
	for k, c := range n.Cols {
		rt := c.GetResTarget()
		i := t.Column(rt.Name)
		if i < 0 {
			return nil, p.errAt(rt.Location, pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", rt.Name, t.Name)
		}
		part := len(rt.Indirection) > 0
		if whole[i] || !part && slices.Contains(into, i) {
			return nil, p.errAt(rt.Location, pgerr.DuplicateColumn, "column \"%s\" specified more than once", rt.Name)
		}
		if whole[i] = !part; part {
			p.insertPart(k, &partOf{&t.Columns[i], rt.Indirection, rt.Location})
		}
		into = append(into, i)
	}
	return into, nil
}

// insertSource plans what provides the rows and returns, per target column,
// the value over the slots of the source. A nil value means the default.
func (p *planner) insertSource(n *pg.InsertStmt, t *catalog.Table, into []int, m *Modify, s *scope) ([]Expr, error) {
	sel := n.SelectStmt.GetSelectStmt()
	if sel == nil { // DEFAULT VALUES
		m.Child = &Result{}
		return nil, nil
	}
	if len(sel.ValuesLists) > 0 && sel.SortClause == nil && sel.LimitCount == nil && sel.WithClause == nil {
		sel, err := p.expandValues(sel, &scope{parent: s.parent, ctes: s.ctes})
		if err != nil {
			return nil, err
		}
		if width := len(sel.ValuesLists[0].GetList().Items); width < len(n.Cols) {
			return nil, p.errAt(n.Cols[width].GetResTarget().Location, pgerr.SyntaxError, "INSERT has more target columns than expressions")
		}
		return p.insertValues(sel, t, into, m, s)
	}
	inner := &scope{parent: s.parent, ctes: s.ctes}
	q, err := p.selectStmt(sel, inner)
	if err != nil {
		return nil, err
	}
	if len(q.cols) > len(into) {
		return nil, p.errAt(firstLocation(sel), pgerr.SyntaxError, "INSERT has more expressions than target columns")
	}
	if len(n.Cols) > 0 && len(q.cols) < len(into) {
		return nil, p.errAt(n.Cols[len(q.cols)].GetResTarget().Location, pgerr.SyntaxError, "INSERT has more target columns than expressions")
	}
	s.absorb(inner)
	m.Child = q.node
	var values []Expr
	for i, c := range q.cols {
		col, err := p.targetColumn(t, into, i)
		if err != nil {
			return nil, err
		}
		e, err := p.assignColumn(NewSlot(c.typ, c.slot, c.name), col.Type, col.Name, firstLocation(sel))
		if err != nil {
			return nil, err
		}
		values = append(values, e)
	}
	return values, nil
}

// insertValues plans VALUES as the source: every cell is typed by its column
// and may be DEFAULT.
func (p *planner) insertValues(sel *pg.SelectStmt, t *catalog.Table, into []int, m *Modify, s *scope) ([]Expr, error) {
	v := &Values{}
	width := len(sel.ValuesLists[0].GetList().Items)
	at := &scope{parent: s.parent, ctes: s.ctes, noAggs: "VALUES"}
	for _, l := range sel.ValuesLists {
		items := l.GetList().Items
		if len(items) != width {
			return nil, p.errAt(location(items[0]), pgerr.SyntaxError, "VALUES lists must all be the same length")
		}
		if width > len(into) {
			return nil, p.errAt(location(items[len(into)]), pgerr.SyntaxError, "INSERT has more expressions than target columns")
		}
		row := make([]Expr, width)
		for i, cell := range items {
			e, err := p.partCell(cell, t, into, i, at)
			if err != nil {
				return nil, err
			}
			row[i] = e
		}
		v.Rows = append(v.Rows, row)
	}
	if width < len(into) && len(into) != countLive(t) {
		return nil, p.errAt(-1, pgerr.SyntaxError, "INSERT has more target columns than expressions")
	}
	var values []Expr
	for i := range width {
		slot := p.newSlot()
		v.Slots = append(v.Slots, slot)
		col, err := p.targetColumn(t, into, i)
		if err != nil {
			return nil, err
		}
		values = append(values, NewSlot(col.Type, slot, ""))
	}
	m.Child = v
	return values, nil
}

func countLive(t *catalog.Table) int {
	n := 0
	for i := range t.Columns {
		if !t.Columns[i].Dropped {
			n++
		}
	}
	return n
}

// cell analyzes one value for a column.
func (p *planner) cell(n *pg.Node, col *catalog.Column, s *scope) (Expr, error) {
	if n.GetSetToDefault() != nil {
		return p.columnDefault(col)
	}
	if col.Generated != "" {
		return nil, p.errAt(location(n), pgerr.GeneratedAlways, "cannot insert a non-DEFAULT value into column \"%s\"", col.Name).
			WithDetail("Column \"%s\" is a generated column.", col.Name)
	}
	if err := p.mayOverride(col, location(n)); err != nil {
		return nil, err
	}
	e, err := p.expr(n, s, "VALUES")
	if err != nil {
		return nil, err
	}
	return p.assignColumn(e, col.Type, col.Name, location(n))
}

func (p *planner) columnDefault(col *catalog.Column) (Expr, error) {
	if col.Sequence != 0 {
		return p.sequenceDefault(col)
	}
	if col.Default == "" {
		if col.Type.Kind == datum.Domain {
			return p.domainValue(col.Type)
		}
		return NewConst(col.Type, datum.Null), nil
	}
	return p.defaultExpr(col.Default, col.Type)
}

// newRow fills m.New: the given values, defaults for the rest.
func (p *planner) newRow(m *Modify, into []int, values []Expr, s *scope) error {
	t := m.Table
	m.New = make([]Expr, len(t.Columns))
	for i, v := range values {
		col := &t.Columns[into[i]]
		if col.Generated != "" && !isNullConst(v) {
			if _, fromValues := m.Child.(*Values); !fromValues {
				return pgerr.New(pgerr.GeneratedAlways, "cannot insert a non-DEFAULT value into column \"%s\"", col.Name).
					WithDetail("Column \"%s\" is a generated column.", col.Name)
			}
		}
		if _, fromValues := m.Child.(*Values); !fromValues {
			if err := p.mayOverride(col, -1); err != nil {
				return err
			}
		}
		if p.ignoresValue(col) {
			continue
		}
		v, err := p.insertedPart(m.New[into[i]], i, v, s)
		if err != nil {
			return err
		}
		m.New[into[i]] = v
	}
	for i := range t.Columns {
		if m.New[i] != nil {
			continue
		}
		if t.Columns[i].Dropped {
			m.New[i] = NewConst(t.Columns[i].Type, datum.Null)
			continue
		}
		e, err := p.columnDefault(&t.Columns[i])
		if err != nil {
			return err
		}
		m.New[i] = e
	}
	return nil
}

func isNullConst(e Expr) bool {
	c, ok := e.(*Const)
	return ok && c.Value.IsNull()
}

// rowRules adds what every new row has to satisfy.
func (p *planner) rowRules(m *Modify) error {
	t := m.Table
	s := &scope{rels: []*rel{p.slotsRel(t, t.Name, m.NewSlots)}, noAggs: "a constraint"}
	for i := range t.Columns {
		col := &t.Columns[i]
		if col.Generated == "" || col.Dropped {
			continue
		}
		e, err := p.storedExpr(col.Generated, s)
		if err != nil {
			return err
		}
		if e, err = p.assign(e, col.Type, -1); err != nil {
			return err
		}
		m.Generated = append(m.Generated, GeneratedColumn{i, e})
	}
	for _, c := range t.Checks {
		e, err := p.storedExpr(c.Expr, s)
		if err != nil {
			return err
		}
		if e, err = p.boolean(e, "CHECK", -1); err != nil {
			return err
		}
		m.Checks = append(m.Checks, CheckExpr{c.Name, e})
	}
	if err := p.indexExpressions(m); err != nil {
		return err
	}
	return p.foreignKeys(m)
}

// foreignKeys resolves the constraints of the table and those that refer to it.
func (p *planner) foreignKeys(m *Modify) error {
	for i := range m.Table.ForeignKeys {
		fk := &m.Table.ForeignKeys[i]
		ref, ok := p.opts.Catalog.Table(fk.RefSchema, fk.RefTable)
		if !ok {
			return pgerr.New(pgerr.InternalError, "foreign key \"%s\" refers to a missing table", fk.Name)
		}
		check, err := p.foreignKey(fk, m.Table, ref)
		if err != nil {
			return err
		}
		m.ForeignKeys = append(m.ForeignKeys, check)
	}
	if m.Kind == Insert && m.Conflict == nil {
		return nil
	}
	return p.referencing(m)
}

func (p *planner) referencing(m *Modify) error {
	for _, from := range p.opts.Catalog.Tables() {
		for i := range from.ForeignKeys {
			fk := &from.ForeignKeys[i]
			if fk.RefSchema != m.Table.Schema || fk.RefTable != m.Table.Name {
				continue
			}
			check, err := p.foreignKey(fk, from, m.Table)
			if err != nil {
				return err
			}
			m.Referenced = append(m.Referenced, check)
		}
	}
	return nil
}

func (p *planner) foreignKey(fk *catalog.ForeignKey, from, ref *catalog.Table) (ForeignKeyCheck, error) {
	p.note(from.Reads())
	p.note(ref.Reads())
	c := ForeignKeyCheck{FK: fk, From: from, Ref: ref}
	for i := range ref.Indexes {
		idx := &ref.Indexes[i]
		if cols, ok := matchKey(idx, fk); ok && idx.Unique && idx.Predicate == "" {
			c.RefIndex, c.Columns = idx, cols
			break
		}
	}
	if c.RefIndex == nil {
		return c, pgerr.New(pgerr.InternalError, "foreign key \"%s\" has no unique index to refer to", fk.Name)
	}
	for i := range from.Indexes {
		if leads(&from.Indexes[i], fk.Columns) {
			c.ByIndex = &from.Indexes[i]
			break
		}
	}
	return c, nil
}

// matchKey tells whether idx is over exactly the referenced columns and gives
// the referring columns in the order of its keys.
func matchKey(idx *catalog.Index, fk *catalog.ForeignKey) ([]int, bool) {
	if len(idx.Keys) != len(fk.RefColumns) {
		return nil, false
	}
	var cols []int
	for _, k := range idx.Keys {
		i := slices.Index(fk.RefColumns, k.Column)
		if i < 0 {
			return nil, false
		}
		cols = append(cols, fk.Columns[i])
	}
	return cols, true
}

// leads tells whether the first key columns of idx are cols, in any order.
func leads(idx *catalog.Index, cols []int) bool {
	if len(idx.Keys) < len(cols) || idx.Predicate != "" {
		return false
	}
	for _, k := range idx.Keys[:len(cols)] {
		if !slices.Contains(cols, k.Column) {
			return false
		}
	}
	return true
}

// returning finishes a data modification.
func (p *planner) returning(m *Modify, list []*pg.Node, s *scope) (*query, error) {
	if len(list) == 0 {
		return &query{node: m}, nil
	}
	targets, err := p.targets(list, s)
	if err != nil {
		return nil, err
	}
	q := &query{node: m}
	for _, t := range targets {
		e, err := p.settle(t.expr)
		if err != nil {
			return nil, err
		}
		t.col.typ, t.col.slot = e.Type(), p.newSlot()
		m.Returning, m.Out = append(m.Returning, e), append(m.Out, t.col.slot)
		q.cols = append(q.cols, t.col)
	}
	return q, nil
}

// onConflict plans ON CONFLICT.
func (p *planner) onConflict(n *pg.OnConflictClause, m *Modify, name string, s *scope) error {
	if n == nil {
		return nil
	}
	c := &Conflict{}
	if n.Infer != nil {
		idx, err := p.arbiter(n.Infer, m.Table, name)
		if err != nil {
			return err
		}
		c.Index = idx
	}
	m.Conflict = c
	if n.Action != pg.OnConflictAction_ONCONFLICT_UPDATE {
		return nil
	}
	if c.Index == nil {
		return p.errAt(n.Location, pgerr.SyntaxError, "ON CONFLICT DO UPDATE requires inference specification or constraint name").
			WithHint("For example, ON CONFLICT (column_name).")
	}
	c.ExistingSlots = p.newSlots(len(m.Table.Columns))
	existing := p.slotsRel(m.Table, name, c.ExistingSlots)
	excluded := p.slotsRel(m.Table, "excluded", m.NewSlots)
	at := &scope{parent: s.parent, rels: []*rel{existing, excluded}, ctes: s.ctes, noAggs: "ON CONFLICT"}
	set, changed, err := p.assignments(n.TargetList, m.Table, at, c.ExistingSlots)
	if err != nil {
		return err
	}
	c.Set, c.Changed = set, changed
	if n.WhereClause != nil {
		if c.Where, err = p.condition(n.WhereClause, at, "WHERE"); err != nil {
			return err
		}
	}
	return p.referencing(m)
}

// arbiter finds the unique index that ON CONFLICT means.
func (p *planner) arbiter(n *pg.InferClause, t *catalog.Table, name string) (*catalog.Index, error) {
	if n.Conname != "" {
		for i := range t.Indexes {
			if t.Indexes[i].Name == n.Conname && t.Indexes[i].Unique && t.Indexes[i].Constraint {
				return &t.Indexes[i], nil
			}
		}
		return nil, p.errAt(n.Location, pgerr.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", n.Conname, t.Name)
	}
	r, s := p.inferred(t, name)
	var places []int
	for _, el := range n.IndexElems {
		at, err := p.inferElement(el.GetIndexElem(), r, s, n.Location)
		if err != nil {
			return nil, err
		}
		places = append(places, at)
	}
	var conds []Expr
	if n.WhereClause != nil {
		cond, err := p.condition(n.WhereClause, s, "WHERE")
		if err != nil {
			return nil, err
		}
		conds = conjuncts(cond)
	}
	var partial *catalog.Index
	for i := range t.Indexes {
		idx := &t.Indexes[i]
		if !p.inferredIndex(idx, places, conds, r) {
			continue
		}
		if idx.Predicate == "" {
			return idx, nil
		}
		if partial == nil {
			partial = idx
		}
	}
	if partial != nil {
		return partial, nil
	}
	return nil, p.errAt(n.Location, pgerr.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification")
}

// inferred is the table of an INSERT as the elements of ON CONFLICT see it.
func (p *planner) inferred(t *catalog.Table, name string) (*rel, *scope) {
	slots := p.newSlots(len(t.Columns))
	r := p.slotsRel(t, name, slots)
	r.scan = &Scan{Table: t, Slots: slots, Sys: noSysSlots()} // gives the columns their places; it is never run
	for _, s := range slots {
		p.owner[s] = r
	}
	return r, &scope{rels: []*rel{r}, noAggs: "ON CONFLICT"}
}

// inferElement is the place of a column or expression in [planner.keyOf]; -2 if
// no index has it.
func (p *planner) inferElement(el *pg.IndexElem, r *rel, s *scope, loc int32) (int, error) {
	if el.Name != "" {
		i := r.table.Column(el.Name)
		if i < 0 {
			return 0, p.errAt(loc, pgerr.UndefinedColumn, "column \"%s\" does not exist", el.Name)
		}
		return i, nil
	}
	e, err := p.expr(el.Expr, s, "ON CONFLICT")
	if err != nil {
		return 0, err
	}
	if e, err = p.settle(e); err != nil {
		return 0, err
	}
	if at, ok := p.keyOf(e, r); ok {
		return at, nil
	}
	return -2, nil
}
