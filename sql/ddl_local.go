package sql

import (
	"context"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgcatalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// localDefiner is what a definer of private objects has besides: the session
// whose names and settings it uses.
type localDefiner struct {
	session *Session
	path    []string
	within  string               // the schema that CREATE SCHEMA with definitions makes
	drops   map[catalog.OID]bool // what the present DROP names
}

// creationSchema is where objects go that name no schema: the first one of the
// search path that exists. The definition would not be local if it were not.
func (l *localDefiner) creationSchema(c *catalog.Catalog) string {
	if l.within != "" {
		return l.within
	}
	// Not path: it may begin with pg_temp, where new objects go only if the
	// setting names it.
	for _, name := range l.session.settings.searchPath() {
		if s, ok := c.Schema(name); ok && s.Local() || name == catalog.Temp {
			return name
		}
	}
	return catalog.Private
}

func (l *localDefiner) options(c *catalog.Catalog, st parse.Statement) *plan.Options {
	return &plan.Options{
		Catalog: c, SearchPath: l.path, Virtual: pgcatalog.Find, Sequence: pgcatalog.SequenceRelation,
		Format: l.session.literalFormat(c), Script: st.Script,
	}
}

// txn is the transaction on the store of the objects being defined.
func (d *definer) txn() *mvcc.Txn {
	if d.local != nil {
		return d.env.Private
	}
	return d.env.Txn
}

// readMode is how rows are read that exist already. The system phase of a block
// is serial; a local transaction has to notice rows that come meanwhile.
func (d *definer) readMode() mvcc.ReadMode {
	if d.local != nil {
		return mvcc.ReadRecorded
	}
	return mvcc.ReadUnrecorded
}

// notLocal refuses to touch the blockchain in a local transaction.
func (d *definer) notLocal() error {
	if d.local == nil {
		return nil
	}
	return pgerr.New(pgerr.InsufficientPrivilege, "a definition in schema private cannot concern schema blockchain")
}

// isLocalDDL tells that a statement defines or empties objects that exist in
// schema private only.
func isLocalDDL(n *pg.Node) bool {
	switch n := n.Node.(type) {
	case *pg.Node_CreateSeqStmt, *pg.Node_AlterSeqStmt, *pg.Node_TruncateStmt, *pg.Node_CreateTableAsStmt, *pg.Node_RefreshMatViewStmt:
		return true
	case *pg.Node_SelectStmt:
		return n.SelectStmt.IntoClause != nil
	}
	return false
}

// definesLocally decides where a definition belongs: to the schema that it
// names, or to the first of the search path if it makes something new, or to
// where the object is that it changes.
func (s *Session) definesLocally(n *pg.Node) (bool, error) {
	if s.engine.private == nil {
		if isLocalDDL(n) {
			return false, pgerr.NotBuilt("%s is not supported", commandName(n))
		}
		return false, nil
	}
	w, err := s.openWork()
	if err != nil {
		return false, err
	}
	defer w.close()
	p := placer{session: s, catalog: w.catalog}
	local, err := p.place(n)
	if err == nil && !local {
		err = p.chainOnly(n)
	}
	return local, err
}

// placer finds the schema that a definition concerns.
type placer struct {
	session *Session
	catalog *catalog.Catalog
}

func (p placer) place(n *pg.Node) (bool, error) {
	switch n := n.Node.(type) {
	case *pg.Node_CreateStmt:
		return p.freshRelation(n.CreateStmt.Relation), nil
	case *pg.Node_ViewStmt:
		return p.freshRelation(n.ViewStmt.View), nil
	case *pg.Node_CreateTableAsStmt:
		return p.freshRelation(n.CreateTableAsStmt.Into.Rel), nil
	case *pg.Node_SelectStmt:
		return p.freshRelation(n.SelectStmt.IntoClause.Rel), nil
	case *pg.Node_CreateSeqStmt:
		return p.freshRelation(n.CreateSeqStmt.Sequence), nil
	case *pg.Node_CreateSchemaStmt:
		return p.schema(n.CreateSchemaStmt.Schemaname), nil
	case *pg.Node_CreateFunctionStmt:
		return p.freshName(n.CreateFunctionStmt.Funcname)
	case *pg.Node_CreateEnumStmt:
		return p.freshName(n.CreateEnumStmt.TypeName)
	case *pg.Node_CreateRangeStmt:
		return p.freshName(n.CreateRangeStmt.TypeName)
	case *pg.Node_CreateDomainStmt:
		return p.freshName(n.CreateDomainStmt.Domainname)
	case *pg.Node_CompositeTypeStmt:
		return p.fresh(n.CompositeTypeStmt.Typevar.Schemaname), nil
	case *pg.Node_AlterEnumStmt:
		return p.userType(n.AlterEnumStmt.TypeName)
	case *pg.Node_AlterDomainStmt:
		return p.userType(n.AlterDomainStmt.TypeName)
	case *pg.Node_CreateTrigStmt:
		return p.relation(n.CreateTrigStmt.Relation), nil
	case *pg.Node_CreatePolicyStmt:
		return p.relation(n.CreatePolicyStmt.Table), nil
	case *pg.Node_AlterPolicyStmt:
		return p.relation(n.AlterPolicyStmt.Table), nil
	case *pg.Node_CommentStmt:
		return p.object(n.CommentStmt.Objtype, n.CommentStmt.Object)
	case *pg.Node_IndexStmt:
		return p.relation(n.IndexStmt.Relation), nil
	case *pg.Node_AlterTableStmt:
		return p.relation(n.AlterTableStmt.Relation), nil
	case *pg.Node_AlterSeqStmt:
		return p.relation(n.AlterSeqStmt.Sequence), nil
	case *pg.Node_RefreshMatViewStmt:
		return p.relation(n.RefreshMatViewStmt.Relation), nil
	case *pg.Node_RenameStmt:
		if n.RenameStmt.Relation != nil {
			return p.relation(n.RenameStmt.Relation), nil
		}
		return p.object(n.RenameStmt.RenameType, n.RenameStmt.Object)
	case *pg.Node_TruncateStmt:
		return p.all(len(n.TruncateStmt.Relations), func(i int) (bool, error) {
			return p.relation(n.TruncateStmt.Relations[i].GetRangeVar()), nil
		})
	case *pg.Node_DropStmt:
		return p.all(len(n.DropStmt.Objects), func(i int) (bool, error) {
			return p.object(n.DropStmt.RemoveType, n.DropStmt.Objects[i])
		})
	}
	return false, nil
}

// all demands that a statement concerns one side only.
func (p placer) all(n int, one func(i int) (bool, error)) (bool, error) {
	first := false
	for i := range n {
		local, err := one(i)
		if err != nil {
			return false, err
		}
		if i > 0 && local != first {
			return false, pgerr.New(pgerr.FeatureNotSupported, "a statement cannot change objects of schema private and of other schemas at once")
		}
		first = local
	}
	return first, nil
}

// freshRelation is the place of a new relation, which may be temporary.
func (p placer) freshRelation(v *pg.RangeVar) bool {
	return v.Relpersistence == "t" || p.fresh(v.Schemaname)
}

// fresh is the place of a new object: of the schema that it names, or of the
// first one of the search path that exists.
func (p placer) fresh(schema string) bool {
	names := []string{schema}
	if schema == "" {
		names = p.session.settings.searchPath()
	}
	for _, name := range names {
		if s, ok := p.catalog.Schema(name); ok {
			return s.Local()
		}
		if catalog.IsLocal(name) {
			return true // pg_temp is made when it is first needed
		}
	}
	return false
}

// freshName is the place of a new object with a list of names.
func (p placer) freshName(names []*pg.Node) (bool, error) {
	parts, err := stringList(names)
	if err != nil || len(parts) < 2 {
		return p.fresh(""), err
	}
	return p.fresh(parts[0]), nil
}

// userType is the place of a type.
func (p placer) userType(names []*pg.Node) (bool, error) {
	parts, err := stringList(names)
	if err != nil || len(parts) == 0 {
		return false, err
	}
	schema := ""
	if len(parts) > 1 {
		schema = parts[0]
	}
	for _, sch := range p.schemas(schema) {
		if t, ok := p.catalog.Type(sch, parts[len(parts)-1]); ok {
			return t.Local(), nil
		}
	}
	return p.fresh(schema), nil
}

func (p placer) schemas(schema string) []string {
	if schema != "" {
		return []string{schema}
	}
	return p.session.path()
}

// relation is the place of a table, view, sequence or index, or where a new one
// would go if there is none.
func (p placer) relation(v *pg.RangeVar) bool {
	for _, schema := range p.schemas(v.Schemaname) {
		t, found := p.catalog.Table(schema, v.Relname)
		if !found {
			t, found = p.catalog.IndexTable(schema, v.Relname)
		}
		if found {
			return t.Local()
		}
	}
	return p.fresh(v.Schemaname)
}

func (p placer) object(kind pg.ObjectType, o *pg.Node) (bool, error) {
	switch kind {
	case pg.ObjectType_OBJECT_FUNCTION, pg.ObjectType_OBJECT_PROCEDURE, pg.ObjectType_OBJECT_ROUTINE:
		parts, err := stringList(o.GetObjectWithArgs().GetObjname())
		if err != nil || len(parts) == 0 {
			return false, err
		}
		schema := ""
		if len(parts) > 1 {
			schema = parts[0]
		}
		for _, sch := range p.schemas(schema) {
			if funcs := p.catalog.Funcs(sch, parts[len(parts)-1]); len(funcs) > 0 {
				return funcs[0].Local(), nil
			}
		}
		return p.fresh(schema), nil
	case pg.ObjectType_OBJECT_TABLE, pg.ObjectType_OBJECT_VIEW, pg.ObjectType_OBJECT_MATVIEW, pg.ObjectType_OBJECT_INDEX, pg.ObjectType_OBJECT_SEQUENCE:
		v, err := qualifiedName(o)
		if err != nil {
			return false, err
		}
		return p.relation(v), nil
	case pg.ObjectType_OBJECT_COLUMN, pg.ObjectType_OBJECT_TABCONSTRAINT, pg.ObjectType_OBJECT_TRIGGER, pg.ObjectType_OBJECT_POLICY:
		parts, err := stringList(o.GetList().GetItems())
		if err != nil || len(parts) < 2 {
			return false, err
		}
		v := &pg.RangeVar{Relname: parts[len(parts)-2]}
		if len(parts) > 2 {
			v.Schemaname = parts[len(parts)-3]
		}
		return p.relation(v), nil
	case pg.ObjectType_OBJECT_SCHEMA:
		return p.schema(o.GetString_().GetSval()), nil
	case pg.ObjectType_OBJECT_TYPE, pg.ObjectType_OBJECT_DOMAIN:
		if tn := o.GetTypeName(); tn != nil {
			return p.userType(tn.Names)
		}
		return p.userType(o.GetList().GetItems())
	}
	return false, nil
}

// schema is the place of a schema. A new one goes beside the first one of the
// search path: who works in private makes schemas of this node.
func (p placer) schema(name string) bool {
	path := p.session.settings.searchPath()
	for _, n := range append([]string{name}, path...) {
		if s, ok := p.catalog.Schema(n); ok {
			return s.Local()
		}
	}
	return len(path) > 0 // all of them are gone, and the blockchain never is
}

// chainOnly explains why a statement that works in schema private does not work
// on replicated objects.
func (p placer) chainOnly(n *pg.Node) error {
	switch n := n.Node.(type) {
	case *pg.Node_CreateSeqStmt, *pg.Node_AlterSeqStmt:
		return pgerr.New(pgerr.FeatureNotSupported, "sequences exist in schema private only").
			WithHint("Write CREATE SEQUENCE private.name, or let the caller of a contract pass the key.")
	case *pg.Node_TruncateStmt:
		return pgerr.New(pgerr.InsufficientPrivilege, "cannot truncate table \"%s\" directly: rows in schema blockchain are changed by contracts only",
			n.TruncateStmt.Relations[0].GetRangeVar().GetRelname())
	case *pg.Node_RefreshMatViewStmt:
		return pgerr.New(pgerr.FeatureNotSupported, "materialized views exist in schema private only")
	case *pg.Node_CreateTableAsStmt, *pg.Node_SelectStmt:
		return pgerr.New(pgerr.FeatureNotSupported, "a table of schema blockchain cannot be made from a query").
			WithHint("Name a table of schema private.")
	case *pg.Node_DropStmt:
		if n.DropStmt.RemoveType == pg.ObjectType_OBJECT_SEQUENCE {
			v, err := qualifiedName(n.DropStmt.Objects[0])
			if err == nil && !n.DropStmt.MissingOk {
				err = pgerr.New(pgerr.UndefinedTable, "sequence \"%s\" does not exist", v.Relname)
			}
			return err
		}
	}
	return nil
}

// runLocalDDL carries out a definition in schema private, in the local
// transaction.
func (s *Session) runLocalDDL(ctx context.Context, p *Prepared) (rowSource, error) {
	if s.readOnly() {
		return nil, pgerr.New(pgerr.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", commandName(p.Statement.Node))
	}
	return s.attempts(ctx, func() (*work, rowSource, error) {
		w, err := s.openWork()
		if err != nil {
			return nil, nil, err
		}
		if w.env, err = s.localEnv(ctx, w, false); err != nil {
			return w, nil, err
		}
		d := &definer{
			engine: s.engine, env: w.env, owner: s.opts.User, notice: func(e *pgerr.Error) { s.notice("NOTICE", e) },
			editor: catalog.NewPrivateEditor(w.local.txn, w.chain, w.catalog, s.engine.private.nextOID),
			local:  &localDefiner{session: s, path: s.path()},
		}
		out := done(commandName(p.Statement.Node))
		if n, err := d.create(p.Statement); err != nil {
			return w, nil, err
		} else if n >= 0 {
			out = done(commandTag("SELECT", n))
		}
		if own := d.editor.Private(); own != nil {
			w.local.own, w.local.merged = own, nil
		}
		return w, out, nil
	})
}

// create executes a definition; n is the number of rows of a table made from a
// query, else -1.
func (d *definer) create(st parse.Statement) (n int64, err error) {
	switch s := st.Node.Node.(type) {
	case *pg.Node_CreateTableAsStmt:
		return d.createTableAs(s.CreateTableAsStmt, st)
	case *pg.Node_SelectStmt:
		query := proto.Clone(s.SelectStmt).(*pg.SelectStmt)
		query.IntoClause = nil
		node := &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: query}}
		return d.createTableAs(&pg.CreateTableAsStmt{Query: node, Into: s.SelectStmt.IntoClause}, st)
	}
	return -1, d.execute(st)
}

// executeLocal carries out the statements that exist for private objects only.
func (d *definer) executeLocal(st parse.Statement) error {
	switch n := st.Node.Node.(type) {
	case *pg.Node_CreateSeqStmt:
		return d.createSequence(n.CreateSeqStmt)
	case *pg.Node_AlterSeqStmt:
		return d.alterSequence(n.AlterSeqStmt)
	case *pg.Node_TruncateStmt:
		return d.truncate(n.TruncateStmt)
	case *pg.Node_RefreshMatViewStmt:
		return d.refresh(n.RefreshMatViewStmt, st)
	}
	return pgerr.NotBuilt("%s is not supported", commandName(st.Node))
}

// identifyRows gives a table without primary key a hidden column to store its
// rows by. It counts as dropped, so that nothing shows it.
func (def *tableDef) identifyRows() error {
	oid, err := def.d.editor.NextOID()
	if err != nil {
		return err
	}
	t := def.table
	t.Columns = append(t.Columns, catalog.Column{Name: "rowid", TypeOID: datum.Int8.OID, TypMod: -1, Dropped: true, Type: datum.T(datum.Int8)})
	t.Indexes = append(t.Indexes, catalog.Index{
		OID: oid, Unique: true, Primary: true, Hidden: true, Keys: []catalog.IndexKey{{Column: len(t.Columns) - 1}},
	})
	return nil
}

// truncate is TRUNCATE: all rows go, whatever refers to them from outside the
// list is refused or emptied as well.
func (d *definer) truncate(n *pg.TruncateStmt) error {
	var list []*catalog.Table
	has := func(t *catalog.Table) bool {
		for _, o := range list {
			if o.OID == t.OID {
				return true
			}
		}
		return false
	}
	for _, r := range n.Relations {
		t, err := d.findTable(r.GetRangeVar())
		if err != nil {
			return err
		}
		if t.Kind != catalog.OrdinaryTable {
			return pgerr.New(pgerr.WrongObjectType, "\"%s\" is not a table", t.Name)
		}
		if !has(t) {
			list = append(list, t)
		}
	}
	for i := 0; i < len(list); i++ {
		for _, o := range d.catalog().Tables() {
			for _, fk := range o.ForeignKeys {
				if fk.RefSchema != list[i].Schema || fk.RefTable != list[i].Name || has(o) {
					continue
				}
				if n.Behavior != pg.DropBehavior_DROP_CASCADE {
					return pgerr.New(pgerr.FeatureNotSupported, "cannot truncate a table referenced in a foreign key constraint").
						WithDetail("Table \"%s\" references \"%s\".", o.Name, list[i].Name).
						WithHint("Truncate table \"%s\" at the same time, or use TRUNCATE ... CASCADE.", o.Name)
				}
				d.say(pgerr.SuccessfulCompletion, "truncate cascades to table \"%s\"", o.Name)
				list = append(list, o)
			}
		}
	}
	for _, t := range list {
		if err := d.deleteRows(t); err != nil {
			return err
		}
		if !n.RestartSeqs {
			continue
		}
		for _, q := range d.ownedSequences(t) {
			if err := d.restart(q, q.Sequence.Start); err != nil {
				return err
			}
		}
	}
	return nil
}
