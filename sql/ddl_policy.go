package sql

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

var policyCommands = map[string]string{
	"all": catalog.PolicyAll, "select": catalog.PolicySelect, "insert": catalog.PolicyInsert,
	"update": catalog.PolicyUpdate, "delete": catalog.PolicyDelete,
}

// securable finds the table that a policy is about.
func (d *definer) securable(v *pg.RangeVar) (*catalog.Table, error) {
	t, err := d.findTable(v)
	if err == nil && t.Kind != catalog.OrdinaryTable {
		err = pgerr.New(pgerr.WrongObjectType, "\"%s\" is not a table", t.Name)
	}
	return t, err
}

func policyAt(t *catalog.Table, name string) int {
	return slices.IndexFunc(t.Policies, func(p catalog.Policy) bool { return p.Name == name })
}

func (d *definer) createPolicy(n *pg.CreatePolicyStmt, st parse.Statement) error {
	t, err := d.securable(n.Table)
	if err != nil {
		return err
	}
	if policyAt(t, n.PolicyName) >= 0 {
		return pgerr.New(pgerr.DuplicateObject, "policy \"%s\" for table \"%s\" already exists", n.PolicyName, t.Name)
	}
	p := catalog.Policy{Name: n.PolicyName, Restrictive: !n.Permissive, Command: policyCommands[n.CmdName]}
	if err := policyClauses(&p, n.Qual != nil, n.WithCheck != nil); err != nil {
		return err
	}
	if p.Roles, err = d.policyRoles(n.Roles); err != nil {
		return err
	}
	if p.OID, err = d.editor.NextOID(); err != nil {
		return err
	}
	next := copyTable(t)
	next.Policies = append(slices.Clone(t.Policies), p)
	return d.putPolicy(next, len(next.Policies)-1, n.Qual, n.WithCheck, st)
}

// policyClauses refuses conditions that the command of a policy has no use for.
func policyClauses(p *catalog.Policy, using, check bool) error {
	switch {
	case check && (p.Command == catalog.PolicySelect || p.Command == catalog.PolicyDelete):
		return pgerr.New(pgerr.SyntaxError, "WITH CHECK cannot be applied to SELECT or DELETE")
	case using && p.Command == catalog.PolicyInsert:
		return pgerr.New(pgerr.SyntaxError, "only WITH CHECK expression allowed for INSERT")
	}
	return nil
}

// policyRoles are the roles of TO, sorted; PUBLIC stands for all.
func (d *definer) policyRoles(list []*pg.Node) ([]string, error) {
	roles, err := d.grantees(list)
	if err != nil {
		return nil, err
	}
	if slices.Contains(roles, catalog.Public) {
		return []string{catalog.Public}, nil
	}
	slices.Sort(roles)
	return slices.Compact(roles), nil
}

// putPolicy writes a table whose policy i has new conditions; nil leaves one as it
// is. They are analyzed with the table as it will be.
func (d *definer) putPolicy(t *catalog.Table, i int, using, check *pg.Node, st parse.Statement) (err error) {
	p := &t.Policies[i]
	for _, part := range []struct {
		node *pg.Node
		text *string
	}{{using, &p.Using}, {check, &p.Check}} {
		if part.node == nil {
			continue
		}
		if *part.text, err = deparse(part.node); err != nil {
			return err
		}
	}
	opts := d.options(st)
	open := *t // a policy that reads its own table fails when it is used, not here
	open.RowSecurity = false
	opts.Catalog = d.catalog().With(&open)
	for _, text := range []string{p.Using, p.Check} {
		if err := plan.CheckPolicy(t, text, opts); err != nil {
			return err
		}
	}
	return d.editor.PutTable(t)
}

func (d *definer) alterPolicy(n *pg.AlterPolicyStmt, st parse.Statement) error {
	t, i, err := d.findPolicy(n.Table, n.PolicyName)
	if err != nil {
		return err
	}
	next := copyTable(t)
	next.Policies = slices.Clone(t.Policies)
	p := &next.Policies[i]
	if err := policyClauses(p, n.Qual != nil, n.WithCheck != nil); err != nil {
		return err
	}
	if len(n.Roles) > 0 {
		if p.Roles, err = d.policyRoles(n.Roles); err != nil {
			return err
		}
	}
	return d.putPolicy(next, i, n.Qual, n.WithCheck, st)
}

func (d *definer) findPolicy(v *pg.RangeVar, name string) (*catalog.Table, int, error) {
	t, err := d.securable(v)
	if err != nil {
		return nil, 0, err
	}
	i := policyAt(t, name)
	if i < 0 {
		return nil, 0, errNoPolicy(name, t.Name)
	}
	return t, i, nil
}

func errNoPolicy(name, table string) error {
	return pgerr.New(pgerr.UndefinedObject, "policy \"%s\" for table \"%s\" does not exist", name, table)
}

// dropPolicy is DROP POLICY name ON table.
func (d *definer) dropPolicy(n *pg.DropStmt, o *pg.Node) error {
	parts, err := stringList(o.GetList().GetItems())
	if err != nil || len(parts) < 2 {
		return pgerr.New(pgerr.SyntaxError, "a name was expected")
	}
	v, name := &pg.RangeVar{Relname: parts[len(parts)-2]}, parts[len(parts)-1]
	if len(parts) > 2 {
		v.Schemaname = parts[len(parts)-3]
	}
	t, i, err := d.findPolicy(v, name)
	switch {
	case err != nil && n.MissingOk && pgerr.CodeOf(err) == pgerr.UndefinedObject:
		d.say(pgerr.SuccessfulCompletion, "policy \"%s\" for relation \"%s\" does not exist, skipping", name, v.Relname)
		return nil
	case err != nil && n.MissingOk && pgerr.CodeOf(err) == pgerr.UndefinedTable:
		d.say(pgerr.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", v.Relname)
		return nil
	case err != nil:
		return err
	}
	next := copyTable(t)
	next.Policies = slices.Delete(slices.Clone(t.Policies), i, i+1)
	return d.editor.PutTable(next)
}

// renamePolicy is ALTER POLICY ... RENAME TO.
func (d *definer) renamePolicy(n *pg.RenameStmt) error {
	t, i, err := d.findPolicy(n.Relation, n.Subname)
	if err != nil {
		return err
	}
	if policyAt(t, n.Newname) >= 0 {
		return pgerr.New(pgerr.DuplicateObject, "policy \"%s\" for table \"%s\" already exists", n.Newname, t.Name)
	}
	next := copyTable(t)
	next.Policies = slices.Clone(t.Policies)
	next.Policies[i].Name = n.Newname
	return d.editor.PutTable(next)
}

// secureTable is ALTER TABLE ... ENABLE, DISABLE, FORCE and NO FORCE ROW LEVEL
// SECURITY.
func (d *definer) secureTable(t *catalog.Table, form pg.AlterTableType) error {
	if t.Kind != catalog.OrdinaryTable {
		return pgerr.New(pgerr.WrongObjectType, "ALTER action ROW LEVEL SECURITY cannot be performed on relation \"%s\"", t.Name)
	}
	next := copyTable(t)
	switch form {
	case pg.AlterTableType_AT_EnableRowSecurity:
		next.RowSecurity = true
	case pg.AlterTableType_AT_DisableRowSecurity:
		next.RowSecurity = false
	case pg.AlterTableType_AT_ForceRowSecurity:
		next.ForceRowSecurity = true
	default:
		next.ForceRowSecurity = false
	}
	return d.editor.PutTable(next)
}
