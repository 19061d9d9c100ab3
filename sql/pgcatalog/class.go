package pgcatalog

import (
	"slices"
	"strings"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/plan"
)

// The OIDs that stand for fixed objects, as in PostgreSQL.
const (
	superuserOID datum.OID = 10
	btreeOID     datum.OID = 403
	heapOID      datum.OID = 2
	collationOID datum.OID = 100 // default
	databaseOID  datum.OID = 5
	// firstViewOID: what PostgreSQL defines as views over its catalogs has OIDs
	// from here on, the catalogs themselves lower ones.
	firstViewOID datum.OID = 12000
	// twinBit turns the OID of a table into that of its provenance twin.
	twinBit datum.OID = 1 << 30
)

// column is a column of any relation, as the catalog relations describe it.
type column struct {
	name    string
	typ     datum.Type
	notNull bool
	def     string
	gen     bool
	dropped bool
	// identity is attidentity: 0 for none.
	identity byte
}

// class is any relation with columns: stored, computed, or a provenance twin.
type class struct {
	oid    datum.OID
	schema string
	name   string
	kind   byte
	owner  string
	cols   []column
	table  *catalog.Table // nil for computed relations
	twin   bool
	// rowType is the type of the rows in pg_type; 0 if there is none.
	rowType datum.OID
}

// provenanceColumns are what a twin has besides its table's columns.
var provenanceColumns = []string{"xmin", "xmax", "creator_block", "deleter_block"}

// eachClass calls f for all relations: stored ones by name, then twins, then
// computed ones.
func eachClass(env *Env, f func(*class) error) error {
	for _, t := range env.Catalog.Tables() {
		if err := f(env.stored(t)); err != nil {
			return err
		}
	}
	for _, t := range env.Catalog.Tables() {
		if t.Kind != catalog.OrdinaryTable || t.Local() {
			continue
		}
		c := storedClass(t)
		c.oid, c.schema, c.kind, c.twin, c.rowType = t.OID^twinBit, catalog.Provenance, 'v', true, 0
		for i := range c.cols {
			c.cols[i].notNull, c.cols[i].def, c.cols[i].gen = false, "", false
		}
		for _, name := range provenanceColumns {
			c.cols = append(c.cols, column{name: name, typ: datum.T(datum.Int8)})
		}
		if err := f(c); err != nil {
			return err
		}
	}
	for _, t := range env.Catalog.Types() {
		if t.Kind != catalog.CompositeType {
			continue
		}
		if err := f(compositeClass(t)); err != nil {
			return err
		}
	}
	for _, r := range sortedRelations {
		c := &class{oid: r.OID, schema: r.Schema, name: r.Name, kind: 'r', owner: catalog.SystemOwner}
		if r.OID >= firstViewOID {
			c.kind = 'v'
		}
		for _, col := range r.Columns {
			if !col.Hidden {
				c.cols = append(c.cols, column{name: col.Name, typ: col.Type})
			}
		}
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

func storedClass(t *catalog.Table) *class {
	c := &class{oid: t.OID, schema: t.Schema, name: t.Name, kind: t.Kind[0], owner: t.Owner, table: t, rowType: t.RowType}
	for _, col := range t.Columns {
		def := col.Default
		if col.Generated != "" {
			def = col.Generated
		}
		one := column{name: col.Name, typ: col.Type, notNull: col.NotNull, def: def, gen: col.Generated != "", dropped: col.Dropped}
		if col.Identity != "" {
			one.identity = col.Identity[0]
		}
		c.cols = append(c.cols, one)
	}
	return c
}

func (env *Env) namespace(schema string) datum.OID {
	if s, ok := env.Catalog.Schema(schema); ok {
		return s.OID
	}
	return 0
}

// ownerOID numbers the users by their position; the system's own objects belong
// to the superuser. Owners are recorded as organization/user.
func (env *Env) ownerOID(name string) datum.OID {
	for i, u := range env.Users {
		if u == name || strings.HasSuffix(name, "/"+u) {
			return datum.OID(20000 + i)
		}
	}
	return superuserOID
}

func namespaces(env *Env, next func() *row, emit func() error) error {
	for _, s := range env.Catalog.Schemas() {
		next().oid("oid", s.OID).str("nspname", s.Name).oid("nspowner", env.ownerOID(s.Owner))
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

// linkedTables are the tables on either side of a foreign key. PostgreSQL keeps
// triggers for them; psql shows foreign keys only of relations with triggers.
func linkedTables(env *Env) map[datum.OID]bool {
	linked := map[datum.OID]bool{}
	for _, t := range env.Catalog.Tables() {
		for _, k := range t.ForeignKeys {
			linked[t.OID] = true
			if ref, ok := env.Catalog.Table(k.RefSchema, k.RefTable); ok {
				linked[ref.OID] = true
			}
		}
	}
	return linked
}

func classes(env *Env, next func() *row, emit func() error) error {
	linked := linkedTables(env)
	err := eachClass(env, func(c *class) error {
		r := classRow(env, next(), c.oid, c.schema, c.name, c.owner, c.kind, len(c.cols))
		if c.kind == 'r' || c.kind == 'm' {
			r.oid("relam", heapOID)
		}
		r.oid("reltype", c.rowType)
		if c.table != nil && !c.twin {
			r.bool("relhasindex", hasIndex(c.table)).int("relchecks", int64(len(c.table.Checks)))
			r.bool("relispopulated", !c.table.Unpopulated)
			r.bool("relrowsecurity", c.table.RowSecurity).bool("relforcerowsecurity", c.table.ForceRowSecurity)
			r.bool("relhasrules", c.table.HasQuery()).bool("relhastriggers", linked[c.table.OID] || len(c.table.Triggers) > 0)
		}
		return emit()
	})
	if err != nil {
		return err
	}
	return eachIndex(env, func(t *catalog.Table, idx *catalog.Index) error {
		classRow(env, next(), idx.OID, t.Schema, idx.Name, t.Owner, 'i', len(idx.Keys)+len(idx.Include)).oid("relam", btreeOID)
		return emit()
	})
}

func classRow(env *Env, r *row, oid datum.OID, schema, name, owner string, kind byte, natts int) *row {
	r.oid("oid", oid).str("relname", name).oid("relnamespace", env.namespace(schema)).oid("relowner", env.ownerOID(owner))
	replica := byte('n') // nothing identifies a row of a view or index
	if kind == 'r' {
		replica = 'd'
	}
	persistence := byte('p')
	if catalog.IsTemp(schema) {
		persistence = 't'
	}
	r.char("relkind", kind).char("relpersistence", persistence).char("relreplident", replica).int("relnatts", int64(natts))
	r.zeros("reltype", "reloftype", "relam", "relfilenode", "reltablespace", "relpages", "relallvisible", "reltoastrelid",
		"relchecks", "relrewrite", "relfrozenxid", "relminmxid")
	r.bools(false, "relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass", "relrowsecurity",
		"relforcerowsecurity", "relispartition")
	return r.set("reltuples", datum.Float(-1)).bool("relispopulated", true)
}

func eachIndex(env *Env, f func(*catalog.Table, *catalog.Index) error) error {
	for _, t := range env.Catalog.Tables() {
		for i := range t.Indexes {
			if t.Indexes[i].Hidden {
				continue
			}
			if err := f(t, &t.Indexes[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func attributes(env *Env, next func() *row, emit func() error) error {
	err := eachClass(env, func(c *class) error {
		for i := range c.cols {
			attributeRow(next(), c.oid, i+1, &c.cols[i])
			if err := emit(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachIndex(env, func(t *catalog.Table, idx *catalog.Index) error {
		for i, k := range idx.Keys {
			attributeRow(next(), idx.OID, i+1, indexColumn(t, idx, k))
			if err := emit(); err != nil {
				return err
			}
		}
		for i, c := range idx.Include {
			attributeRow(next(), idx.OID, len(idx.Keys)+i+1, &column{name: t.Columns[c].Name, typ: t.Columns[c].Type})
			if err := emit(); err != nil {
				return err
			}
		}
		return nil
	})
}

// indexColumn is a key of an index as pg_attribute has it; expressions are named
// after their functions, or expr, and numbered (index.c, ChooseIndexColumnNames).
func indexColumn(t *catalog.Table, idx *catalog.Index, k catalog.IndexKey) *column {
	if k.Column >= 0 {
		return &column{name: t.Columns[k.Column].Name, typ: t.Columns[k.Column].Type}
	}
	names := map[string]bool{}
	for _, o := range idx.Keys {
		name := ""
		if o.Column >= 0 {
			name = t.Columns[o.Column].Name
		} else {
			base := "expr"
			if node, err := parse.Expression(o.Expr); err == nil {
				base = plan.IndexColumnName(node)
			}
			name = base
			for n := 1; names[name]; n++ {
				name = base + itoa(n)
			}
		}
		names[name] = true
		if o == k {
			return &column{name: name, typ: k.Type}
		}
	}
	return &column{name: "expr", typ: k.Type}
}

func attributeRow(r *row, rel datum.OID, num int, c *column) {
	name, typ := c.name, c.typ.OID
	if c.dropped {
		name, typ = "........pg.dropped."+itoa(num)+"........", 0
	}
	r.oid("attrelid", rel).str("attname", name).oid("atttypid", typ).int("attnum", int64(num))
	r.int("attlen", int64(c.typ.Len)).int("atttypmod", int64(c.typ.Mod)).int("attcacheoff", -1).int("attstattarget", -1)
	r.zeros("attndims", "attinhcount")
	if c.typ.IsArray() {
		r.int("attndims", 1)
	}
	gen := byte(0)
	if c.gen {
		gen = 's'
	}
	r.bool("attbyval", c.typ.Fixed).char("attalign", 'i').char("attstorage", storage(c.typ)).char("attcompression", 0)
	r.char("attidentity", c.identity).char("attgenerated", gen).bool("attnotnull", c.notNull).bool("atthasdef", c.def != "")
	r.bools(false, "atthasmissing").bool("attisdropped", c.dropped).bool("attislocal", true)
	r.oid("attcollation", collationOf(c.typ))
}

func storage(t datum.Type) byte {
	switch {
	case t.Desc == datum.Numeric:
		return 'm'
	case t.Len < 0:
		return 'x'
	}
	return 'p'
}

func collationOf(t datum.Type) datum.OID {
	if t.Category == 'S' {
		return collationOID
	}
	return 0
}

// defaultOID numbers the default of a column: the low bits of the table's OID,
// then the column, apart from all other objects.
func defaultOID(t *catalog.Table, column int) datum.OID {
	const columnBits = 11 // a table has at most 1600 columns
	return 1<<29 | (t.OID&(1<<(29-columnBits)-1))<<columnBits | datum.OID(column)
}

func defaults(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Tables() {
		for i, c := range env.stored(t).cols {
			if c.def == "" || c.dropped {
				continue
			}
			next().oid("oid", defaultOID(t, i)).oid("adrelid", t.OID).int("adnum", int64(i+1)).str("adbin", c.def)
			if err := emit(); err != nil {
				return err
			}
		}
	}
	return nil
}

func indexes(env *Env, next func() *row, emit func() error) error {
	return eachIndex(env, func(t *catalog.Table, idx *catalog.Index) error {
		n, natts := len(idx.Keys), len(idx.Keys)+len(idx.Include)
		var keys, opts, zero []datum.Datum
		for _, k := range idx.Keys {
			keys = append(keys, datum.Int(int64(k.Column+1)))
			opts = append(opts, datum.Int(indexOption(k)))
			zero = append(zero, datum.Int(0))
		}
		for _, c := range idx.Include {
			keys = append(keys, datum.Int(int64(c+1)))
		}
		r := next().oid("indexrelid", idx.OID).oid("indrelid", t.OID).int("indnatts", int64(natts)).int("indnkeyatts", int64(n))
		r.bool("indisunique", idx.Unique).bool("indisprimary", idx.Primary).bool("indimmediate", true)
		r.bools(false, "indnullsnotdistinct", "indisexclusion", "indisclustered", "indcheckxmin", "indisreplident")
		r.bools(true, "indisvalid", "indisready", "indislive")
		r.set("indkey", vector(datum.Int2Vector, keys)).set("indoption", vector(datum.Int2Vector, opts))
		r.set("indcollation", vector(datum.OIDVector, zero)).set("indclass", vector(datum.OIDVector, zero))
		if idx.Predicate != "" {
			r.str("indpred", idx.Predicate)
		}
		var exprs []string
		for i := range idx.Keys {
			if idx.Keys[i].Column < 0 {
				exprs = append(exprs, idx.Keys[i].Expr)
			}
		}
		if exprs != nil {
			r.str("indexprs", strings.Join(exprs, ", "))
		}
		return emit()
	})
}

func indexOption(k catalog.IndexKey) int64 {
	v := int64(0)
	if k.Desc {
		v |= 1
	}
	if k.NullsFirst {
		v |= 2
	}
	return v
}

// vector makes an int2vector or oidvector: through its text form.
func vector(d *datum.Desc, vals []datum.Datum) datum.Datum {
	text := ""
	for i, v := range vals {
		if i > 0 {
			text += " "
		}
		text += itoa(int(v.Int()))
	}
	out, err := d.Parse(text, -1, &datum.ContractFormat)
	if err != nil {
		panic("pgcatalog: vector: " + err.Error())
	}
	return out
}

// positions makes an int2[] of column numbers.
func positions(cols []int) datum.Datum {
	vals := make([]datum.Datum, len(cols))
	for i, c := range cols {
		vals[i] = datum.Int(int64(c + 1))
	}
	return datum.MakeArray(datum.Int2, vals)
}

// constraint is any constraint of a table.
type constraint struct {
	oid     datum.OID
	name    string
	kind    byte // c f p u
	table   *catalog.Table
	columns []int
	fk      *catalog.ForeignKey
	index   *catalog.Index
	check   *catalog.Check
}

// eachConstraint calls f for all constraints, by table.
func eachConstraint(env *Env, f func(*constraint) error) error {
	for _, t := range env.Catalog.Tables() {
		list := tableConstraints(t)
		for i := range list {
			if err := f(&list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func tableConstraints(t *catalog.Table) []constraint {
	var out []constraint
	for i := range t.Indexes {
		idx := &t.Indexes[i]
		if !idx.Constraint {
			continue
		}
		c := constraint{oid: idx.OID, name: idx.Name, kind: 'u', table: t, index: idx}
		if idx.Primary {
			c.kind = 'p'
		}
		for _, k := range idx.Keys {
			c.columns = append(c.columns, k.Column)
		}
		out = append(out, c)
	}
	for i := range t.Checks {
		k := &t.Checks[i]
		out = append(out, constraint{oid: k.OID, name: k.Name, kind: 'c', table: t, check: k, columns: checkedColumns(t, k.Expr)})
	}
	for i := range t.ForeignKeys {
		k := &t.ForeignKeys[i]
		out = append(out, constraint{oid: k.OID, name: k.Name, kind: 'f', table: t, columns: k.Columns, fk: k})
	}
	return out
}

func constraints(env *Env, next func() *row, emit func() error) error {
	if err := domainConstraints(env, next, emit); err != nil {
		return err
	}
	return eachConstraint(env, func(c *constraint) error {
		r := next().oid("oid", c.oid).str("conname", c.name).oid("connamespace", env.namespace(c.table.Schema))
		r.char("contype", c.kind).oid("conrelid", c.table.OID)
		r.bools(false, "condeferrable", "condeferred").bools(true, "convalidated", "conislocal", "connoinherit")
		r.zeros("contypid", "conindid", "conparentid", "confrelid", "coninhcount")
		r.char("confupdtype", ' ').char("confdeltype", ' ').char("confmatchtype", ' ')
		if c.columns != nil {
			r.set("conkey", positions(c.columns))
		}
		if c.index != nil {
			r.oid("conindid", c.index.OID)
		}
		if c.check != nil {
			r.str("conbin", c.check.Expr)
		}
		if c.fk != nil {
			r.char("confupdtype", c.fk.OnUpdate[0]).char("confdeltype", c.fk.OnDelete[0]).char("confmatchtype", 's')
			r.set("confkey", positions(c.fk.RefColumns))
			if idx := env.reliedOn(c.fk); idx != nil {
				r.oid("conindid", idx.OID)
			}
			if ref, ok := env.Catalog.Table(c.fk.RefSchema, c.fk.RefTable); ok {
				r.oid("confrelid", ref.OID)
			}
		}
		return emit()
	})
}

func tables(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Tables() {
		if t.Kind != catalog.OrdinaryTable {
			continue
		}
		next().str("schemaname", t.Schema).str("tablename", t.Name).str("tableowner", t.Owner).bool("hasindexes", true).
			bools(false, "hasrules", "hastriggers", "rowsecurity")
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func views(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Tables() {
		if t.Kind != catalog.View {
			continue
		}
		next().str("schemaname", t.Schema).str("viewname", t.Name).str("viewowner", t.Owner).str("definition", t.Query+";")
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func materializedViews(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Tables() {
		if t.Kind != catalog.MaterializedView {
			continue
		}
		shown := slices.ContainsFunc(t.Indexes, func(x catalog.Index) bool { return !x.Hidden })
		next().str("schemaname", t.Schema).str("matviewname", t.Name).str("matviewowner", t.Owner).
			bool("hasindexes", shown).bool("ispopulated", !t.Unpopulated).str("definition", " "+t.Query+";")
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func rewrites(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Tables() {
		if !t.HasQuery() {
			continue
		}
		next().oid("oid", t.OID).str("rulename", "_RETURN").oid("ev_class", t.OID).char("ev_type", '1').
			char("ev_enabled", 'O').bool("is_instead", true)
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func indexDefinitions(env *Env, next func() *row, emit func() error) error {
	return eachIndex(env, func(t *catalog.Table, idx *catalog.Index) error {
		next().str("schemaname", t.Schema).str("tablename", t.Name).str("indexname", idx.Name).str("indexdef", IndexDefinition(t, idx))
		return emit()
	})
}
