package plan

import (
	"slices"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Row-level security (PostgreSQL: rewrite/rowsecurity.c). A plan is made for
// everyone; whom a policy concerns is asked when it runs, by a [RoleTest]. The
// conditions stand in Scan.Policy, which is evaluated before anything that the
// statement itself says about the row: no function of the statement sees a row
// that is hidden.

// RoleTest asks who runs the statement: whether the role owns a table, and
// passes by its policies (Owner is set), or is one of Roles.
type RoleTest struct {
	typed
	// As is the owner of the view in whose text this stands: his rights count then.
	As    string
	Owner string
	Force bool // not even the owner passes
	Roles []string
}

// Holds answers the question for a role.
func (t *RoleTest) Holds(role catalog.Role) bool {
	if role == (catalog.Role{}) {
		return t.Owner != ""
	}
	if t.As != "" {
		if t.As == t.Owner {
			return !t.Force
		}
		role = catalog.RoleOf(t.As)
	}
	if t.Owner != "" {
		return !t.Force && role.Owns(t.Owner)
	}
	return slices.ContainsFunc(t.Roles, role.Has)
}

// PolicyCheck is what a new row has to satisfy; Policy is the name of a
// restrictive one, "" for all permissive ones together.
type PolicyCheck struct {
	Policy string
	Expr   Expr
}

func boolOp(op BoolOpKind, args ...Expr) Expr {
	return &BoolOp{typed: typed{datum.T(datum.BoolType)}, Op: op, Args: args}
}

func isTrue(e Expr) Expr {
	return &BoolTest{typed: typed{datum.T(datum.BoolType)}, Arg: e, Want: datum.Bool(true)}
}

// viewer is the owner of the innermost view whose text is planned.
func (p *planner) viewer() string {
	if len(p.views) == 0 {
		return ""
	}
	return p.views[len(p.views)-1].Owner
}

// bypass tells that policies of t do not concern the role.
func (p *planner) bypass(t *catalog.Table) Expr {
	return &RoleTest{typed: typed{datum.T(datum.BoolType)}, As: p.viewer(), Owner: t.Owner, Force: t.ForceRowSecurity}
}

// policyExpr analyzes the condition of a policy over the columns that s has.
func (p *planner) policyExpr(t *catalog.Table, text string, s *scope) (Expr, error) {
	if text == "" {
		return NewConst(datum.T(datum.BoolType), datum.Bool(true)), nil
	}
	if slices.Contains(p.policed, t.OID) {
		return nil, pgerr.New(pgerr.InvalidObjectDefinition, "infinite recursion detected in policy for relation \"%s\"", t.Name)
	}
	p.policed = append(p.policed, t.OID)
	defer func() { p.policed = p.policed[:len(p.policed)-1] }()
	e, err := p.storedExpr(text, s)
	if err != nil {
		return nil, err
	}
	return p.boolean(e, "POLICY", -1)
}

// visible is the condition under which rows of t may be read for a command.
func (p *planner) visible(t *catalog.Table, command string, s *scope) (Expr, error) {
	checks, err := p.policies(t, command, s, func(k *catalog.Policy) string { return k.Using })
	if err != nil {
		return nil, err
	}
	all := make([]Expr, len(checks))
	for i, c := range checks {
		all[i] = c.Expr
	}
	return isTrue(boolOp(Or, p.bypass(t), boolOp(And, all...))), nil
}

// writableRows are the conditions that new rows of t have to satisfy.
func (p *planner) writableRows(t *catalog.Table, command string, s *scope) ([]PolicyCheck, error) {
	checks, err := p.policies(t, command, s, func(k *catalog.Policy) string {
		if k.Check != "" {
			return k.Check
		}
		return k.Using
	})
	for i := range checks {
		checks[i].Expr = isTrue(boolOp(Or, p.bypass(t), checks[i].Expr))
	}
	return checks, err
}

// policies are the conditions of all policies for a command: one of the
// permissive ones has to hold, and every restrictive one.
func (p *planner) policies(t *catalog.Table, command string, s *scope, text func(*catalog.Policy) string) ([]PolicyCheck, error) {
	permissive := []Expr{NewConst(datum.T(datum.BoolType), datum.Bool(false))}
	var restrictive []PolicyCheck
	for i := range t.Policies {
		k := &t.Policies[i]
		if !k.For(command) {
			continue
		}
		e, err := p.policyExpr(t, text(k), s)
		if err != nil {
			return nil, err
		}
		concerned := &RoleTest{typed: typed{datum.T(datum.BoolType)}, As: p.viewer(), Roles: k.Roles}
		if k.Restrictive {
			restrictive = append(restrictive, PolicyCheck{k.Name, boolOp(Or, boolOp(Not, concerned), e)})
		} else {
			permissive = append(permissive, boolOp(And, concerned, e))
		}
	}
	return append([]PolicyCheck{{Expr: boolOp(Or, permissive...)}}, restrictive...), nil
}

// secure hides the rows of a FROM item that a command may not see.
func (p *planner) secure(r *rel, command string) error {
	if !r.table.RowSecurity {
		return nil
	}
	visible, alias := r.visible, r.alias
	r.visible, r.alias = true, r.table.Name
	e, err := p.visible(r.table, command, &scope{rels: []*rel{r}, noAggs: "policy expressions"})
	r.visible, r.alias = visible, alias
	if err != nil {
		return err
	}
	if r.scan.Policy != nil {
		e = boolOp(And, r.scan.Policy, e)
	}
	r.scan.Policy = e
	return nil
}

// secureRows adds to a modification what its new rows have to satisfy: the
// policies for the command, and those for SELECT if the rows are returned.
func (p *planner) secureRows(m *Modify, command string, returned bool) error {
	if !m.Table.RowSecurity {
		return nil
	}
	s := &scope{rels: []*rel{p.slotsRel(m.Table, m.Table.Name, m.NewSlots)}, noAggs: "policy expressions"}
	checks, err := p.writableRows(m.Table, command, s)
	if err != nil {
		return err
	}
	if returned {
		e, err := p.visible(m.Table, catalog.PolicySelect, s)
		if err != nil {
			return err
		}
		checks = append(checks, PolicyCheck{Expr: e})
	}
	m.Policies = checks
	return nil
}

// secureConflict does that for ON CONFLICT DO UPDATE, where the row that is there
// has to be visible too.
func (p *planner) secureConflict(m *Modify) error {
	c := m.Conflict
	if !m.Table.RowSecurity || c == nil || c.Set == nil {
		return nil
	}
	there := &scope{rels: []*rel{p.slotsRel(m.Table, m.Table.Name, c.ExistingSlots)}, noAggs: "policy expressions"}
	for _, command := range []string{catalog.PolicySelect, catalog.PolicyUpdate} {
		e, err := p.visible(m.Table, command, there)
		if err != nil {
			return err
		}
		c.Visible = append(c.Visible, e)
	}
	fresh := &scope{rels: []*rel{p.slotsRel(m.Table, m.Table.Name, m.NewSlots)}, noAggs: "policy expressions"}
	var err error
	if c.Policies, err = p.writableRows(m.Table, catalog.PolicyUpdate, fresh); err != nil {
		return err
	}
	e, err := p.visible(m.Table, catalog.PolicySelect, fresh)
	c.Policies = append(c.Policies, PolicyCheck{Expr: e})
	return err
}

// CheckPolicy analyzes the condition of a policy of t.
func CheckPolicy(t *catalog.Table, text string, opts *Options) error {
	p := newPlanner(opts)
	s := &scope{rels: []*rel{p.slotsRel(t, t.Name, p.newSlots(len(t.Columns)))}, noAggs: "policy expressions"}
	_, err := p.policyExpr(t, text, s)
	return err
}
