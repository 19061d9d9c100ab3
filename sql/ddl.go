package sql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgcatalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// Script executes a DDL script in a transaction of the system phase. It stops
// at the first error; undoing is the caller's business (the transaction as a
// whole does not commit). owner becomes the owner of what is created. notice
// receives what PostgreSQL would say on the way; it may be nil.
func (e *Engine) Script(env *exec.Env, owner, script string, notice func(*pgerr.Error)) error {
	return e.ScriptWith(env, owner, script, ScriptOptions{Notice: notice})
}

// ScriptOptions is what a caller of [Engine.ScriptWith] wants to be told.
type ScriptOptions struct {
	// Notice is given what PostgreSQL would say on the way.
	Notice func(*pgerr.Error)
	// Created, if not nil, is given every function that the script creates or
	// replaces, with the error of EngineOptions.ValidateFunction if there is one,
	// and decides what becomes of it.
	Created func(fn *catalog.Func, err error) error
	// Attached, if not nil, is given the functions of the triggers that the script
	// creates.
	Attached func(fn *catalog.Func)
}

// ScriptWith is [Engine.Script] for callers who watch.
func (e *Engine) ScriptWith(env *exec.Env, owner, script string, opts ScriptOptions) error {
	list, err := parse.Statements(script)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return pgerr.New(pgerr.SyntaxError, "the script is empty")
	}
	role := env.Role
	env.Role = catalog.Role{} // a script is the network's own doing
	defer func() { env.Role = role }()
	d := &definer{engine: e, env: env, owner: owner, notice: opts.Notice, created: opts.Created, attached: opts.Attached, editor: catalog.NewEditor(env.Txn, env.Catalog)}
	for _, st := range list {
		if err := d.execute(st); err != nil {
			if pe, ok := pgerr.From(err); ok && pe.Position == 0 {
				pe.AddContext(fmt.Sprintf("SQL statement \"%s\"", parse.Clip(st.Text)))
			}
			return err
		}
		env.Catalog = d.editor.Catalog()
	}
	return nil
}

// CheckScript parses a script and refuses what can never be deployed, so that
// a proposal is refused before anyone votes on it.
func CheckScript(script string) error {
	list, err := parse.Statements(script)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return pgerr.New(pgerr.SyntaxError, "the script is empty")
	}
	for _, st := range list {
		if !isDDL(st.Node) {
			return pgerr.New(pgerr.FeatureNotSupported, "%s cannot be part of a deployment", commandName(st.Node)).
				WithHint("A deployment holds definitions only: CREATE, ALTER, DROP, GRANT, REVOKE.")
		}
	}
	return nil
}

// definer executes the statements of one script.
type definer struct {
	engine *Engine
	env    *exec.Env
	owner  string
	notice func(*pgerr.Error)
	// created is ScriptOptions.Created
	created func(*catalog.Func, error) error
	// attached is ScriptOptions.Attached
	attached func(*catalog.Func)
	editor   *catalog.Editor
	// local is set where objects of schema private are defined: see ddl_local.go.
	local *localDefiner
}

func (d *definer) catalog() *catalog.Catalog { return d.editor.Catalog() }

func (d *definer) say(code pgerr.Code, format string, args ...any) {
	if d.notice != nil {
		d.notice(pgerr.New(code, format, args...))
	}
}

// isDDL tells that a statement is part of what scripts may hold.
func isDDL(n *pg.Node) bool {
	switch n.Node.(type) {
	case *pg.Node_CreateStmt, *pg.Node_IndexStmt, *pg.Node_CreateFunctionStmt, *pg.Node_DropStmt, *pg.Node_ViewStmt,
		*pg.Node_AlterTableStmt, *pg.Node_RenameStmt, *pg.Node_CreateEnumStmt, *pg.Node_AlterEnumStmt,
		*pg.Node_CompositeTypeStmt, *pg.Node_CreateDomainStmt, *pg.Node_AlterDomainStmt, *pg.Node_CreateTrigStmt,
		*pg.Node_CreateSchemaStmt, *pg.Node_CommentStmt, *pg.Node_CreateTableAsStmt, *pg.Node_GrantStmt,
		*pg.Node_CreatePolicyStmt, *pg.Node_AlterPolicyStmt, *pg.Node_CreateRangeStmt:
		return true
	}
	return false
}

func (d *definer) execute(st parse.Statement) error {
	switch n := st.Node.Node.(type) {
	case *pg.Node_CreateStmt:
		return d.createTable(n.CreateStmt, st)
	case *pg.Node_IndexStmt:
		return d.createIndex(n.IndexStmt, st)
	case *pg.Node_CreateFunctionStmt:
		return d.createFunction(n.CreateFunctionStmt, st)
	case *pg.Node_ViewStmt:
		return d.createView(n.ViewStmt, st)
	case *pg.Node_DropStmt:
		return d.drop(n.DropStmt)
	case *pg.Node_AlterTableStmt:
		return d.alterTable(n.AlterTableStmt, st)
	case *pg.Node_RenameStmt:
		return d.rename(n.RenameStmt)
	case *pg.Node_CreateSchemaStmt:
		return d.createSchema(n.CreateSchemaStmt, st)
	case *pg.Node_CommentStmt:
		return d.comment(n.CommentStmt)
	case *pg.Node_CreateTableAsStmt:
		return pgerr.NotBuilt("CREATE TABLE AS is not supported: its result has no primary key").
			WithHint("Create the table with a primary key, then fill it by a contract: INSERT INTO ... SELECT.")
	case *pg.Node_CreateTrigStmt:
		return d.createTrigger(n.CreateTrigStmt, st)
	case *pg.Node_CreateEnumStmt:
		return d.createEnum(n.CreateEnumStmt)
	case *pg.Node_CreateRangeStmt:
		return d.createRange(n.CreateRangeStmt, st)
	case *pg.Node_AlterEnumStmt:
		return d.alterEnum(n.AlterEnumStmt)
	case *pg.Node_CompositeTypeStmt:
		return d.createComposite(n.CompositeTypeStmt, st)
	case *pg.Node_CreateDomainStmt:
		return d.createDomain(n.CreateDomainStmt, st)
	case *pg.Node_AlterDomainStmt:
		return d.alterDomain(n.AlterDomainStmt, st)
	case *pg.Node_GrantStmt:
		return d.grant(n.GrantStmt)
	case *pg.Node_CreatePolicyStmt:
		return d.createPolicy(n.CreatePolicyStmt, st)
	case *pg.Node_AlterPolicyStmt:
		return d.alterPolicy(n.AlterPolicyStmt, st)
	}
	if d.local != nil {
		return d.executeLocal(st)
	}
	return pgerr.NotBuilt("%s is not supported", commandName(st.Node))
}

// commandName is the command tag of a statement that returns no rows, and its
// name in messages.
func commandName(n *pg.Node) string {
	switch n := n.Node.(type) {
	case *pg.Node_CreateStmt:
		return "CREATE TABLE"
	case *pg.Node_IndexStmt:
		return "CREATE INDEX"
	case *pg.Node_CreateFunctionStmt:
		if n.CreateFunctionStmt.IsProcedure {
			return "CREATE PROCEDURE"
		}
		return "CREATE FUNCTION"
	case *pg.Node_ViewStmt:
		return "CREATE VIEW"
	case *pg.Node_DropStmt:
		return "DROP " + objectName(n.DropStmt.RemoveType)
	case *pg.Node_AlterTableStmt:
		return "ALTER " + objectName(n.AlterTableStmt.Objtype)
	case *pg.Node_RenameStmt:
		return "ALTER " + objectName(n.RenameStmt.RenameType)
	case *pg.Node_CreateTableAsStmt:
		if n.CreateTableAsStmt.Objtype == pg.ObjectType_OBJECT_MATVIEW {
			return "CREATE MATERIALIZED VIEW"
		}
		return "CREATE TABLE AS"
	case *pg.Node_RefreshMatViewStmt:
		return "REFRESH MATERIALIZED VIEW"
	case *pg.Node_SelectStmt:
		if n.SelectStmt.IntoClause != nil {
			return "SELECT INTO"
		}
		return "SELECT"
	case *pg.Node_CreateSeqStmt:
		return "CREATE SEQUENCE"
	case *pg.Node_AlterSeqStmt:
		return "ALTER SEQUENCE"
	case *pg.Node_TruncateStmt:
		return "TRUNCATE TABLE"
	case *pg.Node_CopyStmt:
		return "COPY"
	case *pg.Node_ExplainStmt:
		return "EXPLAIN"
	case *pg.Node_GrantStmt:
		if n.GrantStmt.IsGrant {
			return "GRANT"
		}
		return "REVOKE"
	case *pg.Node_CreateEnumStmt, *pg.Node_CompositeTypeStmt, *pg.Node_CreateRangeStmt:
		return "CREATE TYPE"
	case *pg.Node_CreateTrigStmt:
		return "CREATE TRIGGER"
	case *pg.Node_AlterEnumStmt:
		return "ALTER TYPE"
	case *pg.Node_DoStmt:
		return "DO"
	}
	kind := fmt.Sprintf("%T", n.Node)
	kind = strings.TrimSuffix(strings.TrimPrefix(kind, "*pg_query.Node_"), "Stmt")
	var b strings.Builder
	for i, r := range kind {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

func objectName(t pg.ObjectType) string {
	if t == pg.ObjectType_OBJECT_TABCONSTRAINT || t == pg.ObjectType_OBJECT_COLUMN {
		return "TABLE"
	}
	if t == pg.ObjectType_OBJECT_MATVIEW {
		return "MATERIALIZED VIEW"
	}
	return strings.ReplaceAll(strings.TrimPrefix(t.String(), "OBJECT_"), "_", " ")
}

// schemaOf is where a new object goes: the schema it names, or blockchain, or in
// a local definition the first one of the search path.
func (d *definer) schemaOf(name string) (string, error) {
	switch name {
	case catalog.Temp:
		return d.tempSchema()
	case "", "public":
		if d.local != nil && name == "" {
			if name = d.local.creationSchema(d.catalog()); name == catalog.Temp {
				return d.tempSchema()
			}
			return name, nil
		}
		return catalog.Blockchain, d.notLocal()
	case catalog.Private:
		if d.local != nil {
			return name, nil
		}
		return "", pgerr.New(pgerr.FeatureNotSupported, "schema private is no part of a deployment").
			WithHint("Every node has its own: define the object with a statement by itself, outside the script.")
	case catalog.Provenance, catalog.PgCatalog, catalog.Information:
		return "", pgerr.New(pgerr.InsufficientPrivilege, "permission denied for schema %s", name)
	}
	s, ok := d.catalog().Schema(name)
	if !ok {
		return "", pgerr.New(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", name)
	}
	if !s.Local() {
		return name, d.notLocal()
	}
	return name, nil
}

// relationFree refuses a name that a table, view or index has already.
func (d *definer) relationFree(schema, name string) error {
	_, isTable := d.catalog().Table(schema, name)
	_, isIndex := d.catalog().IndexTable(schema, name)
	if isTable || isIndex {
		return pgerr.New(pgerr.DuplicateTable, "relation \"%s\" already exists", name)
	}
	return nil
}

// findTable finds a table that a statement changes or refers to.
func (d *definer) findTable(v *pg.RangeVar) (*catalog.Table, error) {
	t, err := d.seeTable(v)
	if err == nil && d.local != nil && !t.Local() {
		return nil, d.notLocal()
	}
	return t, err
}

// seeTable finds a table by the names of the script.
func (d *definer) seeTable(v *pg.RangeVar) (*catalog.Table, error) {
	for _, schema := range d.searchIn(v.Schemaname) {
		if t, ok := d.catalog().Table(schema, v.Relname); ok {
			if t.System {
				return nil, pgerr.New(pgerr.InsufficientPrivilege, "permission denied: \"%s\" is a relation of the ledger", t.Name)
			}
			return t, nil
		}
	}
	name := v.Relname
	if v.Schemaname != "" {
		name = v.Schemaname + "." + name
	}
	return nil, pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", name)
}

func (d *definer) searchIn(schema string) []string {
	if schema != "" && schema != "public" {
		return []string{schema}
	}
	if d.local != nil {
		return d.local.path
	}
	return SearchPath
}

// options plans something in the script's environment.
func (d *definer) options(st parse.Statement) *plan.Options {
	if d.local != nil {
		return d.local.options(d.catalog(), st)
	}
	return &plan.Options{
		Catalog: d.catalog(), SearchPath: SearchPath, Virtual: pgcatalog.Find, Contract: true,
		Format: &datum.ContractFormat, Script: st.Script,
	}
}

// viewOptions plans the query of a view as its definition did.
func (d *definer) viewOptions(view *catalog.Table, st parse.Statement) *plan.Options {
	opts := d.options(st)
	opts.Contract, opts.SearchPath = false, view.Path
	if view.Path == nil {
		opts.SearchPath = SearchPath
	}
	return opts
}

// deparse gives the source of an expression node, as the user wrote it.
func deparse(n *pg.Node) (string, error) {
	out, err := deparseStatement(&pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: &pg.SelectStmt{
		TargetList:  []*pg.Node{{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: n}}}},
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
	}}})
	return strings.TrimPrefix(out, "SELECT "), err
}

// treeVersion is the version of the grammar that parse trees belong to.
const treeVersion = 170007

// deparseStatement writes a statement in PostgreSQL's own spelling.
func deparseStatement(n *pg.Node) (string, error) {
	out, err := pg.Deparse(&pg.ParseResult{Version: treeVersion, Stmts: []*pg.RawStmt{{Stmt: n}}})
	if err != nil {
		return "", pgerr.New(pgerr.InternalError, "statement cannot be written: %v", err)
	}
	return out, nil
}
