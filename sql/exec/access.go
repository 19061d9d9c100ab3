package exec

import (
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// guards are the scans of a program that not everyone may run.
type guards []*plan.Scan

// guard notes a scan whose table, or a view that leads to it, has an ACL.
func (c *compiler) guard(n *plan.Scan) {
	needed := n.Table.ACL != nil
	for _, v := range n.Through {
		needed = needed || v.ACL != nil
	}
	if needed {
		c.guards = append(c.guards, n)
	}
}

// check refuses with 42501 what the role of env may not read. As in PostgreSQL,
// who may read a view reads what it shows with the rights of the view's owner.
func (g guards) check(env *Env) error {
	for _, n := range g {
		role := env.Role
		for _, v := range n.Through {
			if !v.ACL.Allows(role, v.Owner, catalog.Select) {
				return pgerr.New(pgerr.InsufficientPrivilege, "permission denied for view %s", v.Name)
			}
			if role != (catalog.Role{}) {
				role = catalog.RoleOf(v.Owner)
			}
		}
		if !n.Table.ACL.Allows(role, n.Table.Owner, catalog.Select) {
			return pgerr.New(pgerr.InsufficientPrivilege, "permission denied for table %s", n.Table.Name)
		}
	}
	return nil
}
