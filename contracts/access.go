package contracts

import (
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// enter checks that the role of env may execute a function and returns the role
// to go back to after it: a SECURITY DEFINER function runs as its owner, any
// other one as whoever calls it.
func enter(env *exec.Env, fn *catalog.Func) (back catalog.Role, err error) {
	back = env.Role
	if !fn.ACL.Allows(back, fn.Owner, catalog.Execute) {
		kind := "function"
		if fn.Kind == catalog.Procedure {
			kind = "procedure"
		}
		return back, pgerr.New(pgerr.InsufficientPrivilege, "permission denied for %s %s", kind, fn.Name)
	}
	become(env, fn)
	return back, nil
}

// become makes the owner of a SECURITY DEFINER function the role of env.
func become(env *exec.Env, fn *catalog.Func) {
	if fn.Definer && env.Role != (catalog.Role{}) {
		env.Role = catalog.RoleOf(fn.Owner)
	}
}
