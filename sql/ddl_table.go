package sql

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// maxColumns is PostgreSQL's MaxHeapAttributeNumber.
const maxColumns = 1600

// tableDef collects a table while its definition is read.
type tableDef struct {
	d     *definer
	table *catalog.Table
	st    parse.Statement
	// keys are the primary key and unique constraints, in order; the primary
	// key is put first in the end.
	keys []catalog.Index
	fks  []pendingKey
	// sequences are those of serial and identity columns.
	sequences []*catalog.Table
}

// pendingKey is a foreign key whose columns are resolved once all are known.
type pendingKey struct {
	c       *pg.Constraint
	columns []string
}

func (d *definer) createTable(n *pg.CreateStmt, st parse.Statement) error {
	schema, err := d.placeOf(n.Relation)
	if err != nil {
		return err
	}
	name := n.Relation.Relname
	if err := d.relationFree(schema, name); err != nil {
		if n.IfNotExists {
			d.say(pgerr.DuplicateTable, "relation \"%s\" already exists, skipping", name)
			return nil
		}
		return err
	}
	if len(n.InhRelations) > 0 || n.Partspec != nil || n.Partbound != nil {
		return pgerr.NotBuilt("inheritance and partitioning are not supported")
	}
	if err := d.typeFree(schema, name); err != nil {
		return err
	}
	oid, err := d.editor.NextOID()
	if err != nil {
		return err
	}
	def := &tableDef{d: d, st: st, table: &catalog.Table{OID: oid, Schema: schema, Name: name, Kind: catalog.OrdinaryTable, Owner: d.owner}}
	if err := onCommit(n.Oncommit, def.table); err != nil {
		return err
	}
	for _, e := range n.TableElts {
		if err := def.element(e); err != nil {
			return err
		}
	}
	if err := def.finish(); err != nil {
		return err
	}
	if err := d.oids(&def.table.RowType, &def.table.RowArray); err != nil {
		return err
	}
	if err := d.editor.PutTable(def.table); err != nil {
		return err
	}
	for _, q := range def.sequences {
		if err := d.editor.PutTable(q); err != nil {
			return err
		}
	}
	if err := def.check(); err != nil {
		return err
	}
	return d.touchReferenced(def.table)
}

func (def *tableDef) element(n *pg.Node) error {
	switch n := n.Node.(type) {
	case *pg.Node_ColumnDef:
		return def.column(n.ColumnDef)
	case *pg.Node_Constraint:
		return def.constraint(n.Constraint, nil)
	case *pg.Node_TableLikeClause:
		return def.like(n.TableLikeClause)
	}
	return pgerr.NotBuilt("this part of CREATE TABLE is not supported")
}

func (def *tableDef) column(n *pg.ColumnDef) error {
	t := def.table
	if t.Column(n.Colname) >= 0 {
		return pgerr.New(pgerr.DuplicateColumn, "column \"%s\" specified more than once", n.Colname)
	}
	if isSystemColumn(n.Colname) {
		return pgerr.New(pgerr.DuplicateColumn, "column name \"%s\" conflicts with a system column name", n.Colname)
	}
	if len(t.Columns) >= maxColumns {
		return pgerr.New(pgerr.TooManyColumns, "tables can have at most %d columns", maxColumns)
	}
	typ, serial, err := def.serialType(n.TypeName)
	if err != nil {
		return positioned(err, def.st, n.TypeName.Location)
	}
	if !serial {
		typ, err = def.d.resolveType(n.TypeName, def.st)
	}
	if err != nil {
		return err
	}
	if typ.Kind == datum.Pseudo {
		return pgerr.New(pgerr.InvalidTableDefinition, "column \"%s\" has pseudo-type %s", n.Colname, datum.FormatType(typ))
	}
	t.Columns = append(t.Columns, catalog.Column{Name: n.Colname, TypeOID: typ.OID, TypMod: typ.Mod, Type: typ})
	if serial {
		if err := def.ownSequence(n.Colname, nil); err != nil {
			return err
		}
	}
	for _, c := range n.Constraints {
		if err := def.constraint(c.GetConstraint(), []string{n.Colname}); err != nil {
			return err
		}
	}
	return nil
}

func isSystemColumn(name string) bool {
	switch name {
	case "xmin", "xmax", "cmin", "cmax", "ctid", "tableoid", "creator_block", "deleter_block":
		return true
	}
	return false
}

// constraint reads one constraint; on is the column that it stands at, nil for
// a table constraint.
func (def *tableDef) constraint(c *pg.Constraint, on []string) error {
	t := def.table
	switch c.Contype {
	case pg.ConstrType_CONSTR_NULL:
		return nil
	case pg.ConstrType_CONSTR_NOTNULL:
		t.Columns[t.Column(on[0])].NotNull = true
		return nil
	case pg.ConstrType_CONSTR_DEFAULT:
		return def.setDefault(&t.Columns[t.Column(on[0])], c.RawExpr)
	case pg.ConstrType_CONSTR_GENERATED:
		text, err := deparse(c.RawExpr)
		t.Columns[t.Column(on[0])].Generated = text
		return err
	case pg.ConstrType_CONSTR_IDENTITY:
		if def.d.local != nil {
			return def.identity(c, on[0])
		}
		return pgerr.New(pgerr.FeatureNotSupported, "identity columns exist in schema private only").
			WithHint("Let the caller pass the key, or derive it from tx_uuid().")
	case pg.ConstrType_CONSTR_CHECK:
		return def.addCheck(c, on)
	case pg.ConstrType_CONSTR_PRIMARY, pg.ConstrType_CONSTR_UNIQUE:
		return def.addKey(c, on)
	case pg.ConstrType_CONSTR_FOREIGN:
		cols, err := stringList(c.FkAttrs)
		if on != nil {
			cols = on
		}
		def.fks = append(def.fks, pendingKey{c, cols})
		return err
	case pg.ConstrType_CONSTR_EXCLUSION:
		return pgerr.NotBuilt("exclusion constraints are not supported")
	case pg.ConstrType_CONSTR_ATTR_DEFERRABLE, pg.ConstrType_CONSTR_ATTR_DEFERRED:
		return pgerr.NotBuilt("deferrable constraints are not supported")
	case pg.ConstrType_CONSTR_ATTR_NOT_DEFERRABLE, pg.ConstrType_CONSTR_ATTR_IMMEDIATE:
		return nil
	}
	return pgerr.NotBuilt("this kind of constraint is not supported")
}

func stringList(list []*pg.Node) ([]string, error) {
	var out []string
	for _, n := range list {
		s := n.GetString_()
		if s == nil {
			return nil, pgerr.New(pgerr.SyntaxError, "a name was expected")
		}
		out = append(out, s.Sval)
	}
	return out, nil
}

func (def *tableDef) setDefault(col *catalog.Column, expr *pg.Node) error {
	text, err := deparse(expr)
	if err != nil {
		return err
	}
	if c := expr.GetAConst(); c != nil && c.Isnull {
		return nil
	}
	col.Default = text
	return nil
}

// constraintName is the given name, or PostgreSQL's choice made unique.
func (def *tableDef) constraintName(given string, parts ...string) (string, error) {
	if given != "" {
		if def.nameTaken(given) {
			return "", pgerr.New(pgerr.DuplicateObject, "constraint \"%s\" for relation \"%s\" already exists", given, def.table.Name)
		}
		return given, nil
	}
	base := shortName(parts)
	name := base
	for i := 1; def.nameTaken(name); i++ {
		name = fmt.Sprintf("%s%d", base, i)
	}
	return name, nil
}

// shortName joins parts with underscores and keeps to 63 bytes by shortening
// the first part.
func shortName(parts []string) string {
	name := strings.Join(parts, "_")
	if over := len(name) - 63; over > 0 {
		parts = slices.Clone(parts)
		parts[0] = parts[0][:max(len(parts[0])-over, 1)]
		name = strings.Join(parts, "_")
	}
	return name
}

func (def *tableDef) nameTaken(name string) bool {
	for _, c := range def.table.Checks {
		if c.Name == name {
			return true
		}
	}
	for _, k := range def.keys {
		if k.Name == name {
			return true
		}
	}
	for _, f := range def.table.ForeignKeys {
		if f.Name == name {
			return true
		}
	}
	return def.d.relationFree(def.table.Schema, name) != nil
}

func (def *tableDef) addCheck(c *pg.Constraint, on []string) error {
	text, err := deparse(c.RawExpr)
	if err != nil {
		return err
	}
	parts := []string{def.table.Name}
	if len(on) == 1 {
		parts = append(parts, on[0])
	} else if col := soleColumn(c.RawExpr); col != "" {
		parts = append(parts, col)
	}
	name, err := def.constraintName(c.Conname, append(parts, "check")...)
	if err != nil {
		return err
	}
	oid, err := def.d.editor.NextOID()
	if err != nil {
		return err
	}
	def.table.Checks = append(def.table.Checks, catalog.Check{OID: oid, Name: name, Expr: text})
	return nil
}

// soleColumn is the one column that a check refers to, if it is one: it becomes
// part of the constraint's name.
func soleColumn(n *pg.Node) string {
	names := map[string]bool{}
	last := ""
	var visit func(n *pg.Node)
	visit = func(n *pg.Node) {
		switch n := n.GetNode().(type) {
		case *pg.Node_ColumnRef:
			if s := n.ColumnRef.Fields[0].GetString_(); s != nil {
				names[s.Sval], last = true, s.Sval
			}
		case *pg.Node_AExpr:
			visit(n.AExpr.Lexpr)
			visit(n.AExpr.Rexpr)
		case *pg.Node_BoolExpr:
			for _, a := range n.BoolExpr.Args {
				visit(a)
			}
		case *pg.Node_FuncCall:
			for _, a := range n.FuncCall.Args {
				visit(a)
			}
		case *pg.Node_TypeCast:
			visit(n.TypeCast.Arg)
		case *pg.Node_NullTest:
			visit(n.NullTest.Arg)
		case *pg.Node_List:
			for _, a := range n.List.Items {
				visit(a)
			}
		}
	}
	visit(n)
	if len(names) == 1 {
		return last
	}
	return ""
}

func (def *tableDef) addKey(c *pg.Constraint, on []string) error {
	cols, err := stringList(c.Keys)
	if err != nil {
		return err
	}
	if len(cols) == 0 {
		cols = on
	}
	if c.Deferrable {
		return pgerr.NotBuilt("deferrable constraints are not supported")
	}
	idx := catalog.Index{Unique: true, Constraint: true, Primary: c.Contype == pg.ConstrType_CONSTR_PRIMARY}
	parts := append([]string{def.table.Name}, cols...)
	parts = append(parts, "key")
	if idx.Primary {
		if slices.ContainsFunc(def.keys, func(k catalog.Index) bool { return k.Primary }) {
			return pgerr.New(pgerr.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", def.table.Name)
		}
		parts = []string{def.table.Name, "pkey"}
	}
	if idx.Keys, err = def.keyColumns(cols, idx.Primary); err != nil {
		return err
	}
	if idx.Name, err = def.constraintName(c.Conname, parts...); err != nil {
		return err
	}
	if idx.OID, err = def.d.editor.NextOID(); err != nil {
		return err
	}
	def.keys = append(def.keys, idx)
	return nil
}

func (def *tableDef) keyColumns(cols []string, primary bool) ([]catalog.IndexKey, error) {
	var keys []catalog.IndexKey
	for _, name := range cols {
		i := def.table.Column(name)
		if i < 0 {
			return nil, pgerr.New(pgerr.UndefinedColumn, "column \"%s\" named in key does not exist", name)
		}
		if slices.ContainsFunc(keys, func(k catalog.IndexKey) bool { return k.Column == i }) {
			return nil, pgerr.New(pgerr.DuplicateColumn, "column \"%s\" appears twice in a key", name)
		}
		col := &def.table.Columns[i]
		if err := indexable(col); err != nil {
			return nil, err
		}
		if primary {
			col.NotNull = true
		}
		keys = append(keys, catalog.IndexKey{Column: i})
	}
	return keys, nil
}

func indexable(col *catalog.Column) error {
	if col.Type.AppendKey == nil {
		return pgerr.New(pgerr.UndefinedObject, "data type %s has no default operator class for access method \"btree\"", datum.FormatType(datum.T(col.Type.Desc))).
			WithHint("You must specify an operator class for the index or define a default operator class for the data type.")
	}
	return nil
}

// finish puts keys and foreign keys together.
func (def *tableDef) finish() error {
	slices.SortStableFunc(def.keys, func(a, b catalog.Index) int {
		switch {
		case a.Primary == b.Primary:
			return 0
		case a.Primary:
			return -1
		}
		return 1
	})
	if def.d.local != nil && (len(def.keys) == 0 || !def.keys[0].Primary) {
		if err := def.identifyRows(); err != nil {
			return err
		}
	} else if len(def.keys) == 0 || !def.keys[0].Primary {
		return pgerr.New(pgerr.InvalidTableDefinition, "table \"%s\" needs a primary key", def.table.Name).
			WithHint("Rows of a replicated table are identified by their primary key: add PRIMARY KEY (...).")
	}
	def.table.Indexes = append(def.table.Indexes, def.keys...)
	for _, p := range def.fks {
		if err := def.addForeignKey(p); err != nil {
			return err
		}
	}
	return nil
}

func (def *tableDef) addForeignKey(p pendingKey) error {
	c, t := p.c, def.table
	if c.Deferrable {
		return pgerr.NotBuilt("deferrable constraints are not supported")
	}
	if c.FkMatchtype == "f" || c.FkMatchtype == "p" {
		return pgerr.NotBuilt("MATCH FULL and MATCH PARTIAL are not supported")
	}
	ref := t
	if c.Pktable.Relname != t.Name || c.Pktable.Schemaname != "" && c.Pktable.Schemaname != t.Schema {
		var err error
		if ref, err = def.d.findTable(c.Pktable); err != nil {
			return err
		}
	}
	if err := temporaryReference(t, ref); err != nil {
		return err
	}
	fk := catalog.ForeignKey{RefSchema: ref.Schema, RefTable: ref.Name, OnDelete: orDefault(c.FkDelAction), OnUpdate: orDefault(c.FkUpdAction)}
	for _, name := range p.columns {
		i := t.Column(name)
		if i < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" referenced in foreign key constraint does not exist", name)
		}
		fk.Columns = append(fk.Columns, i)
	}
	if err := referencedColumns(&fk, ref, c); err != nil {
		return err
	}
	if err := comparableKeys(&fk, t, ref); err != nil {
		return err
	}
	parts := append([]string{t.Name}, p.columns...)
	var err error
	if fk.Name, err = def.constraintName(c.Conname, append(parts, "fkey")...); err != nil {
		return err
	}
	if fk.OID, err = def.d.editor.NextOID(); err != nil {
		return err
	}
	t.ForeignKeys = append(t.ForeignKeys, fk)
	return nil
}

func orDefault(action string) string {
	if action == "" {
		return "a"
	}
	return action
}

func referencedColumns(fk *catalog.ForeignKey, ref *catalog.Table, c *pg.Constraint) error {
	names, err := stringList(c.PkAttrs)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		key := ref.PrimaryKey()
		if key == nil {
			return pgerr.New(pgerr.UndefinedObject, "there is no primary key for referenced table \"%s\"", ref.Name)
		}
		for _, k := range key.Keys {
			fk.RefColumns = append(fk.RefColumns, k.Column)
		}
	}
	for _, name := range names {
		i := ref.Column(name)
		if i < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" referenced in foreign key constraint does not exist", name)
		}
		fk.RefColumns = append(fk.RefColumns, i)
	}
	if len(fk.RefColumns) != len(fk.Columns) {
		return pgerr.New(pgerr.InvalidForeignKey, "number of referencing and referenced columns for foreign key disagree")
	}
	for _, idx := range ref.Indexes {
		if idx.Unique && idx.Predicate == "" && len(idx.Keys) == len(fk.RefColumns) &&
			!slices.ContainsFunc(idx.Keys, func(k catalog.IndexKey) bool { return !slices.Contains(fk.RefColumns, k.Column) }) {
			return nil
		}
	}
	return pgerr.New(pgerr.InvalidForeignKey, "there is no unique constraint matching given keys for referenced table \"%s\"", ref.Name)
}

// comparableKeys demands that both columns of each pair have the same type, so
// that the key of one can be looked up in the index of the other.
func comparableKeys(fk *catalog.ForeignKey, t, ref *catalog.Table) error {
	for i := range fk.Columns {
		a, b := t.Columns[fk.Columns[i]], ref.Columns[fk.RefColumns[i]]
		if a.Type.Same(b.Type) {
			continue
		}
		if _, err := builtin.ResolveOperator("=", b.Type, a.Type); err != nil {
			return pgerr.New(pgerr.DatatypeMismatch, "foreign key constraint cannot be implemented").
				WithDetail("Key columns \"%s\" and \"%s\" are of incompatible types: %s and %s.", a.Name, b.Name, datum.FormatType(a.Type), datum.FormatType(b.Type))
		}
		return pgerr.NotBuilt("a foreign key between columns of types %s and %s is not supported", datum.FormatType(a.Type), datum.FormatType(b.Type)).
			WithHint("Give both columns the same type.")
	}
	return nil
}

// touchReferenced writes the rows of the tables that t refers to once more, so
// that transactions which planned without the new constraint are found stale.
func (d *definer) touchReferenced(t *catalog.Table) error {
	for _, fk := range t.ForeignKeys {
		if ref, ok := d.catalog().Table(fk.RefSchema, fk.RefTable); ok && ref.OID != t.OID {
			again := *ref
			if err := d.editor.PutTable(&again); err != nil {
				return err
			}
		}
	}
	return nil
}

// check plans an insert of defaults, which analyzes every default, check and
// generated expression of the table.
func (def *tableDef) check() error { return def.d.checkTable(def.table, def.st) }

func (d *definer) checkTable(t *catalog.Table, st parse.Statement) error {
	_, err := plan.Statement(&pg.Node{Node: &pg.Node_InsertStmt{InsertStmt: &pg.InsertStmt{
		Relation:   &pg.RangeVar{Schemaname: t.Schema, Relname: t.Name, Location: -1},
		SelectStmt: nil,
	}}}, d.options(st))
	return err
}
