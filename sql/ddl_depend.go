package sql

import (
	"fmt"
	"slices"
	"strconv"
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

func itoa(i int) string { return strconv.Itoa(i) }

// dependent is something that needs an object: what it is and how messages name
// the dependency. Exactly one of view, typ, fn and table is set; column and
// constraint name the part of table or typ that it is.
type dependent struct {
	view       *catalog.Table
	typ        *catalog.Type
	fn         *catalog.Func
	table      *catalog.Table
	column     string
	constraint string
	trigger    string
	policy     string
	text       string
}

// name is the dependent object alone.
func (w *dependent) name() string {
	name, _, _ := strings.Cut(w.text, " depends on ")
	return name
}

// settleDependents refuses to drop an object that others need (2BP01) or, with
// CASCADE, drops them first.
func (d *definer) settleDependents(what string, who []dependent, behavior pg.DropBehavior) error {
	if len(who) == 0 {
		return nil
	}
	if behavior != pg.DropBehavior_DROP_CASCADE {
		lines := make([]string, len(who))
		for i := range who {
			lines[i] = who[i].text
		}
		return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what).
			WithDetail("%s", strings.Join(lines, "\n")).
			WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	if len(who) == 1 {
		d.say(pgerr.SuccessfulCompletion, "drop cascades to %s", who[0].name())
	} else if d.notice != nil {
		lines := make([]string, len(who))
		for i := range who {
			lines[i] = "drop cascades to " + who[i].name()
		}
		d.notice(pgerr.New(pgerr.SuccessfulCompletion, "drop cascades to %d other objects", len(who)).WithDetail("%s", strings.Join(lines, "\n")))
	}
	notice := d.notice
	d.notice = nil // what these take along is announced with them
	defer func() { d.notice = notice }()
	for i := range who {
		if err := d.dropDependent(&who[i]); err != nil {
			return err
		}
	}
	return nil
}

// dropDependent drops one object with what depends on it; it may be gone
// already, as a dependent of another.
func (d *definer) dropDependent(w *dependent) error {
	switch {
	case w.view != nil:
		if t, ok := d.catalog().TableByOID(w.view.OID); ok {
			return d.removeTable(t, pg.DropBehavior_DROP_CASCADE)
		}
	case w.fn != nil:
		if f, ok := d.catalog().FuncByOID(w.fn.OID); ok {
			return d.removeFunc(f, pg.DropBehavior_DROP_CASCADE)
		}
	case w.typ != nil:
		t, ok := d.catalog().UserTypeByOID(w.typ.OID)
		if !ok {
			return nil
		}
		if w.column == "" {
			return d.removeType(t, pg.DropBehavior_DROP_CASCADE)
		}
		return d.dropAttribute(t, w.column)
	case w.table != nil:
		t, ok := d.catalog().TableByOID(w.table.OID)
		if !ok {
			return nil
		}
		if w.policy != "" {
			next := copyTable(t)
			next.Policies = slices.DeleteFunc(slices.Clone(t.Policies), func(k catalog.Policy) bool { return k.Name == w.policy })
			return d.editor.PutTable(next)
		}
		if w.trigger != "" {
			next := copyTable(t)
			next.Triggers = slices.DeleteFunc(next.Triggers, func(x catalog.Trigger) bool { return x.Name == w.trigger })
			return d.editor.PutTable(next)
		}
		c := &pg.AlterTableCmd{Name: w.column, MissingOk: true, Behavior: pg.DropBehavior_DROP_CASCADE}
		if w.constraint != "" {
			c.Name = w.constraint
			return d.dropConstraint(t, c)
		}
		return d.dropColumn(t, c)
	}
	return nil
}

// relationWord is what messages call a relation, with a space.
func relationWord(t *catalog.Table) string {
	switch t.Kind {
	case catalog.View:
		return "view "
	case catalog.MaterializedView:
		return "materialized view "
	case catalog.Sequence:
		return "sequence "
	}
	return "table "
}

// tableDependents names what needs a table or view: foreign keys, views, and
// everything that uses its row type.
func (d *definer) tableDependents(t *catalog.Table) []dependent {
	word := relationWord(t)
	var who []dependent
	for _, o := range d.catalog().Tables() {
		if o.OID == t.OID || d.dropping(o) {
			continue
		}
		for _, fk := range o.ForeignKeys {
			if fk.RefSchema == t.Schema && fk.RefTable == t.Name {
				who = append(who, dependent{table: o, constraint: fk.Name,
					text: "constraint " + fk.Name + " on table " + o.Name + " depends on " + word + t.Name})
			}
		}
		if o.HasQuery() && viewReads(o, t) {
			who = append(who, dependent{view: o, text: relationWord(o) + o.Name + " depends on " + word + t.Name})
		}
	}
	if t.Row != nil {
		for _, w := range d.typeDependents(t.Row) {
			if w.view == nil || !slices.ContainsFunc(who, func(o dependent) bool { return o.view == w.view }) {
				who = append(who, w)
			}
		}
	}
	return who
}

// removeTable drops a table or view and, with CASCADE, what depends on it.
func (d *definer) removeTable(t *catalog.Table, behavior pg.DropBehavior) error {
	if err := d.settleDependents(relationWord(t)+t.Name, d.tableDependents(t), behavior); err != nil {
		return err
	}
	if len(t.Indexes) > 0 {
		if err := d.deleteRows(t); err != nil {
			return err
		}
	}
	if err := d.dropOwned(t, -1); err != nil {
		return err
	}
	return d.editor.DropTable(t)
}

// removeFunc drops a function and, with CASCADE, what depends on it.
func (d *definer) removeFunc(f *catalog.Func, behavior pg.DropBehavior) error {
	if err := d.settleDependents(kindName(f)+" "+f.Name+"("+f.Signature()+")", d.funcDependents(f), behavior); err != nil {
		return err
	}
	return d.editor.DropFunc(f)
}

// runQuery plans a query in the script's environment and reads it to its end.
func (d *definer) runQuery(text string) error {
	one, err := parse.One(text)
	if err != nil {
		return fmt.Errorf("sql: %w", err)
	}
	pl, err := plan.Statement(one.Node, d.options(one))
	if err != nil {
		return err
	}
	prog, err := exec.Compile(pl)
	if err != nil {
		return err
	}
	outer := d.env.Catalog
	d.env.Catalog = d.catalog()
	defer func() { d.env.Catalog = outer }()
	cur, err := prog.Open(d.env, []datum.Datum{})
	if err != nil {
		return err
	}
	defer cur.Close()
	for {
		row, err := cur.Next()
		if err != nil || row == nil {
			return err
		}
	}
}

// columnDependents names what needs a column and is no part of its table:
// foreign keys that refer to it, and views.
func (d *definer) columnDependents(t *catalog.Table, col int) []dependent {
	shown := "column " + t.Columns[col].Name + " of table " + t.Name
	var who []dependent
	for _, o := range d.catalog().Tables() {
		for _, fk := range o.ForeignKeys {
			if o.OID != t.OID && fk.RefSchema == t.Schema && fk.RefTable == t.Name && slices.Contains(fk.RefColumns, col) {
				who = append(who, dependent{table: o, constraint: fk.Name,
					text: "constraint " + fk.Name + " on table " + o.Name + " depends on " + shown})
			}
		}
		if o.HasQuery() && viewReads(o, t) && d.viewNeeds(o, t, col) {
			who = append(who, dependent{view: o, text: relationWord(o) + o.Name + " depends on " + shown})
		}
	}
	for _, x := range t.Triggers {
		if slices.Contains(x.Columns, col) || x.When != "" && mentions(x.When, t.Columns[col].Name) {
			who = append(who, dependent{table: t, trigger: x.Name, text: "trigger " + x.Name + " on table " + t.Name + " depends on " + shown})
		}
	}
	for i := range t.Policies {
		k := &t.Policies[i]
		if k.Using != "" && mentions(k.Using, t.Columns[col].Name) || k.Check != "" && mentions(k.Check, t.Columns[col].Name) {
			who = append(who, dependent{table: t, policy: k.Name, text: "policy " + k.Name + " on table " + t.Name + " depends on " + shown})
		}
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; i != col && !c.Dropped && c.Generated != "" && mentions(c.Generated, t.Columns[col].Name) {
			who = append(who, dependent{table: t, column: c.Name, text: "column " + c.Name + " of table " + t.Name + " depends on " + shown})
		}
	}
	return who
}

// viewNeeds tells whether a view still analyzes without a column.
func (d *definer) viewNeeds(view, t *catalog.Table, col int) bool {
	st, err := parse.One(view.Query)
	if err != nil {
		return true
	}
	less := copyTable(t)
	less.Columns[col].Dropped = true
	opts := d.viewOptions(view, st)
	opts.Catalog = d.catalog().With(less)
	pl, err := plan.Statement(st.Node, opts)
	return err != nil || len(pl.Columns) != len(view.Columns)
}

// mentions tells whether an expression names a column.
func mentions(expr, column string) bool {
	node, err := parse.Expression(expr)
	if err != nil {
		return true
	}
	return slices.Contains(pgcatalog.ColumnNames(node), column)
}

// indexNeeds tells that an index has to do with a column.
func indexNeeds(t *catalog.Table, x *catalog.Index, col int) bool {
	if x.HasColumn(col) || slices.Contains(x.Include, col) {
		return true
	}
	name := t.Columns[col].Name
	return x.Predicate != "" && mentions(x.Predicate, name) ||
		slices.ContainsFunc(x.Keys, func(k catalog.IndexKey) bool { return k.Column < 0 && mentions(k.Expr, name) })
}

// withoutColumn takes what belongs to a column out of its table: indexes, keys
// and checks over it.
func (d *definer) withoutColumn(t *catalog.Table, col int) (*catalog.Table, error) {
	for i := len(t.Indexes) - 1; i > 0; i-- {
		if !indexNeeds(t, &t.Indexes[i], col) {
			continue
		}
		if err := d.withoutIndex(t, i); err != nil {
			return nil, err
		}
		t, _ = d.catalog().TableByOID(t.OID)
	}
	next := copyTable(t)
	name := t.Columns[col].Name
	next.Checks = slices.DeleteFunc(next.Checks, func(k catalog.Check) bool { return mentions(k.Expr, name) })
	next.ForeignKeys = slices.DeleteFunc(next.ForeignKeys, func(k catalog.ForeignKey) bool {
		return slices.Contains(k.Columns, col) || k.RefSchema == t.Schema && k.RefTable == t.Name && slices.Contains(k.RefColumns, col)
	})
	return next, nil
}

// dropAttribute takes an attribute out of a composite type.
func (d *definer) dropAttribute(t *catalog.Type, name string) error {
	if err := d.attributesUnused(t); err != nil {
		return err
	}
	next := *t
	next.Fields = slices.DeleteFunc(slices.Clone(t.Fields), func(f catalog.Column) bool { return f.Name == name })
	return d.editor.PutType(&next)
}

// attributesUnused refuses a change of a composite type whose values are stored.
func (d *definer) attributesUnused(t *catalog.Type) error {
	for _, o := range d.catalog().Tables() {
		if o.Kind != catalog.OrdinaryTable {
			continue
		}
		for i := range o.Columns {
			if c := &o.Columns[i]; !c.Dropped && uses(c.Type.Desc, t.OID) {
				return pgerr.New(pgerr.FeatureNotSupported, "cannot alter type \"%s\" because column \"%s.%s\" uses it", t.Name, o.Name, c.Name)
			}
		}
	}
	return nil
}
