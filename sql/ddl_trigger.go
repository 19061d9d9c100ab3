package sql

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgcatalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// The bits of CreateTrigStmt (catalog/pg_trigger.h).
const (
	trigBefore   = 1 << 1
	trigInsert   = 1 << 2
	trigDelete   = 1 << 3
	trigUpdate   = 1 << 4
	trigTruncate = 1 << 5
	trigInstead  = 1 << 6
)

func (d *definer) createTrigger(n *pg.CreateTrigStmt, st parse.Statement) error {
	t, err := d.findTable(n.Relation)
	if err != nil {
		return err
	}
	switch {
	case n.Isconstraint || n.Deferrable:
		return pgerr.NotBuilt("constraint triggers are not supported")
	case len(n.TransitionRels) > 0:
		return pgerr.NotBuilt("transition tables are not supported")
	case n.Timing&trigInstead != 0:
		return pgerr.NotBuilt("INSTEAD OF triggers are not supported")
	case n.Events&trigTruncate != 0:
		return pgerr.NotBuilt("TRUNCATE triggers are not supported")
	case t.Kind == catalog.View && n.Row:
		return pgerr.New(pgerr.WrongObjectType, "\"%s\" is a view", t.Name).
			WithDetail("Views cannot have row-level BEFORE or AFTER triggers.")
	case t.Kind == catalog.View:
		return pgerr.NotBuilt("triggers on views are not supported")
	}
	x := catalog.Trigger{Name: n.Trigname, Before: n.Timing&trigBefore != 0, Row: n.Row}
	for _, e := range []struct {
		bit  int32
		name string
	}{{trigInsert, "INSERT"}, {trigDelete, "DELETE"}, {trigUpdate, "UPDATE"}} {
		if n.Events&e.bit != 0 {
			x.Events = append(x.Events, e.name)
		}
	}
	columns, err := stringList(n.Columns)
	if err != nil {
		return err
	}
	for _, name := range columns {
		i := t.Column(name)
		if i < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.Name)
		}
		if slices.Contains(x.Columns, i) {
			return pgerr.New(pgerr.DuplicateColumn, "column \"%s\" specified more than once", name)
		}
		x.Columns = append(x.Columns, i)
	}
	if x.Args, err = stringList(n.Args); err != nil {
		return err
	}
	if n.WhenClause != nil {
		if err := d.triggerWhen(&x, t, n.WhenClause, st); err != nil {
			return err
		}
	}
	fn, err := d.triggerFunction(n.Funcname)
	if err != nil {
		return err
	}
	x.FuncOID = fn.OID
	if d.attached != nil {
		d.attached(fn)
	}
	next := copyTable(t)
	at := t.Trigger(x.Name)
	if at >= 0 && !n.Replace {
		return pgerr.New(pgerr.DuplicateObject, "trigger \"%s\" for relation \"%s\" already exists", x.Name, t.Name)
	}
	if at >= 0 {
		x.OID, x.Disabled = t.Triggers[at].OID, t.Triggers[at].Disabled
		next.Triggers[at] = x
		return d.editor.PutTable(next)
	}
	if err := d.oids(&x.OID); err != nil {
		return err
	}
	next.Triggers = append(next.Triggers, x)
	return d.editor.PutTable(next)
}

// triggerWhen reads the WHEN condition: it may use the rows that the events
// have.
func (d *definer) triggerWhen(x *catalog.Trigger, t *catalog.Table, when *pg.Node, st parse.Statement) error {
	text, err := deparse(when)
	if err != nil {
		return err
	}
	x.When = text
	for _, ref := range pgcatalog.ColumnRefs(when) {
		row := ref.Fields[0].GetString_().GetSval()
		if row != "old" && row != "new" {
			continue
		}
		refuse := func(format string) error {
			return pgerr.New(pgerr.InvalidObjectDefinition, "%s", format).At(parse.Position(st.Script, ref.Location))
		}
		switch {
		case !x.Row:
			return refuse("statement trigger's WHEN condition cannot reference column values")
		case row == "old" && slices.Contains(x.Events, "INSERT"):
			return refuse("INSERT trigger's WHEN condition cannot reference OLD values")
		case row == "new" && slices.Contains(x.Events, "DELETE"):
			return refuse("DELETE trigger's WHEN condition cannot reference NEW values")
		}
	}
	opts := d.options(st)
	return plan.TriggerCondition(t, text, x.Row, x.Row, opts)
}

// triggerFunction finds the function of a trigger: no arguments, returning
// trigger.
func (d *definer) triggerFunction(names []*pg.Node) (*catalog.Func, error) {
	parts, err := stringList(names)
	if err != nil {
		return nil, err
	}
	schema := ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	name := parts[len(parts)-1]
	for _, s := range d.searchIn(schema) {
		for _, f := range d.catalog().Funcs(s, name) {
			if len(f.InArgs()) > 0 {
				continue
			}
			if f.Ret.Desc != datum.Trigger {
				return nil, pgerr.New(pgerr.InvalidObjectDefinition, "function %s must return type %s", name, "trigger")
			}
			return f, nil
		}
	}
	return nil, pgerr.New(pgerr.UndefinedFunction, "function %s() does not exist", strings.Join(parts, "."))
}

func (d *definer) dropTrigger(n *pg.DropStmt, o *pg.Node) error {
	parts, err := stringList(o.GetList().GetItems())
	if err != nil || len(parts) < 2 {
		return pgerr.New(pgerr.SyntaxError, "a name was expected")
	}
	name := parts[len(parts)-1]
	v := &pg.RangeVar{Relname: parts[len(parts)-2]}
	if len(parts) > 2 {
		v.Schemaname = parts[len(parts)-3]
	}
	t, err := d.findTable(v)
	if err != nil {
		if n.MissingOk && pgerr.CodeOf(err) == pgerr.UndefinedTable {
			d.say(pgerr.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", v.Relname)
			return nil
		}
		return err
	}
	i := t.Trigger(name)
	if i < 0 {
		if n.MissingOk {
			d.say(pgerr.SuccessfulCompletion, "trigger \"%s\" for relation \"%s\" does not exist, skipping", name, t.Name)
			return nil
		}
		return noTrigger(t, name)
	}
	next := copyTable(t)
	next.Triggers = slices.Delete(next.Triggers, i, i+1)
	return d.editor.PutTable(next)
}

func noTrigger(t *catalog.Table, name string) error {
	return pgerr.New(pgerr.UndefinedObject, "trigger \"%s\" for table \"%s\" does not exist", name, t.Name)
}

// enableTrigger is ALTER TABLE ... ENABLE or DISABLE TRIGGER name, ALL or USER.
func (d *definer) enableTrigger(t *catalog.Table, name string, disabled bool) error {
	next := copyTable(t)
	for i := range next.Triggers {
		if name == "" || next.Triggers[i].Name == name {
			next.Triggers[i].Disabled = disabled
		}
	}
	if name != "" && t.Trigger(name) < 0 {
		return noTrigger(t, name)
	}
	return d.editor.PutTable(next)
}

func (d *definer) renameTrigger(n *pg.RenameStmt) error {
	t, err := d.findTable(n.Relation)
	if err != nil {
		return err
	}
	i := t.Trigger(n.Subname)
	switch {
	case i < 0:
		return noTrigger(t, n.Subname)
	case t.Trigger(n.Newname) >= 0:
		return pgerr.New(pgerr.DuplicateObject, "trigger \"%s\" for relation \"%s\" already exists", n.Newname, t.Name)
	}
	next := copyTable(t)
	next.Triggers[i].Name = n.Newname
	return d.editor.PutTable(next)
}

// funcDependents names the triggers that run a function.
func (d *definer) funcDependents(f *catalog.Func) []dependent {
	var who []dependent
	for _, t := range d.catalog().Tables() {
		for _, x := range t.Triggers {
			if x.FuncOID == f.OID {
				who = append(who, dependent{table: t, trigger: x.Name,
					text: "trigger " + x.Name + " on table " + t.Name + " depends on function " + f.Name + "()"})
			}
		}
	}
	return who
}
