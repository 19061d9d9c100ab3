package exec

import (
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// policyProg is what row-level security demands of a new row.
type policyProg struct {
	name string
	eval evalFunc
}

func (c *compiler) policies(list []plan.PolicyCheck) ([]policyProg, error) {
	var out []policyProg
	for _, k := range list {
		ev, err := c.expr(k.Expr)
		if err != nil {
			return nil, err
		}
		out = append(out, policyProg{k.Policy, ev})
	}
	return out, nil
}

func (c *compiler) roleTest(e *plan.RoleTest) evalFunc {
	return func(f *frame) (datum.Datum, error) { return datum.Bool(e.Holds(f.env.Role)), nil }
}

// admitRow raises 42501 if a policy forbids the new row.
func admitRow(f *frame, t *catalog.Table, list []policyProg) error {
	for i := range list {
		ok, err := pass(f, list[i].eval)
		if err != nil {
			return err
		}
		if ok {
			continue
		}
		if list[i].name != "" {
			return pgerr.New(pgerr.InsufficientPrivilege, "new row violates row-level security policy \"%s\" for table \"%s\"", list[i].name, t.Name)
		}
		return pgerr.New(pgerr.InsufficientPrivilege, "new row violates row-level security policy for table \"%s\"", t.Name)
	}
	return nil
}

// admitExisting raises 42501 if ON CONFLICT DO UPDATE meets a row that is hidden.
func admitExisting(f *frame, t *catalog.Table, visible []evalFunc) error {
	for _, ev := range visible {
		ok, err := pass(f, ev)
		if err != nil {
			return err
		}
		if !ok {
			return pgerr.New(pgerr.InsufficientPrivilege, "new row violates row-level security policy (USING expression) for table \"%s\"", t.Name)
		}
	}
	return nil
}
