package sql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// grant is GRANT and REVOKE: EXECUTE on functions and procedures, SELECT on
// tables and views, to organizations, users (org/user) and PUBLIC.
func (d *definer) grant(n *pg.GrantStmt) error {
	if n.Targtype != pg.GrantTargetType_ACL_TARGET_OBJECT {
		return pgerr.NotBuilt("%s ... ON ALL ... IN SCHEMA is not supported", grantWord(n))
	}
	if n.GrantOption || n.Grantor != nil {
		return pgerr.NotBuilt("grant options are not supported").
			WithHint("Who may use an object is decided by those who approve deployments.")
	}
	want := catalog.Execute
	switch n.Objtype {
	case pg.ObjectType_OBJECT_FUNCTION, pg.ObjectType_OBJECT_PROCEDURE, pg.ObjectType_OBJECT_ROUTINE:
	case pg.ObjectType_OBJECT_TABLE:
		want = catalog.Select
	default:
		return pgerr.NotBuilt("%s on a %s is not supported", grantWord(n), strings.ToLower(objectName(n.Objtype)))
	}
	if err := privileges(n, want); err != nil {
		return err
	}
	roles, err := d.grantees(n.Grantees)
	if err != nil {
		return err
	}
	for _, o := range n.Objects {
		if want == catalog.Select {
			err = d.grantOnTable(n, o.GetRangeVar(), roles)
		} else {
			err = d.grantOnFunction(n, o.GetObjectWithArgs(), roles)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func grantWord(n *pg.GrantStmt) string {
	if n.IsGrant {
		return "GRANT"
	}
	return "REVOKE"
}

// privileges accepts ALL and the one privilege that the kind of object has.
func privileges(n *pg.GrantStmt, want catalog.Privilege) error {
	name, kind := "execute", "function"
	if want == catalog.Select {
		name, kind = "select", "relation"
	}
	for _, p := range n.Privileges {
		a := p.GetAccessPriv()
		switch got := a.GetPrivName(); {
		case len(a.GetCols()) > 0:
			return pgerr.NotBuilt("privileges on columns are not supported")
		case got == name:
		case got == "insert" || got == "update" || got == "delete" || got == "truncate" || got == "references" || got == "trigger":
			if want == catalog.Select {
				return pgerr.NotBuilt("privilege %s is not supported", strings.ToUpper(got)).
					WithHint("Rows are changed by contracts only: grant EXECUTE on the functions that do it.")
			}
			fallthrough
		default:
			return pgerr.New(pgerr.InvalidGrantOperation, "invalid privilege type %s for %s", strings.ToUpper(got), kind)
		}
	}
	return nil
}

// grantees reads the roles that a statement names, which have to exist.
func (d *definer) grantees(list []*pg.Node) ([]string, error) {
	var out []string
	for _, n := range list {
		r := n.GetRoleSpec()
		switch r.Roletype {
		case pg.RoleSpecType_ROLESPEC_PUBLIC:
			out = append(out, catalog.Public)
		case pg.RoleSpecType_ROLESPEC_CSTRING:
			ok, err := d.roleExists(r.Rolename)
			if err != nil {
				return nil, err
			}
			if !ok {
				return nil, pgerr.New(pgerr.UndefinedObject, "role \"%s\" does not exist", r.Rolename).
					WithHint("Roles are the organizations, their users (\"org/user\") and PUBLIC.")
			}
			out = append(out, r.Rolename)
		default:
			return nil, pgerr.NotBuilt("this kind of role is not supported").WithHint("Name an organization, a user (\"org/user\") or PUBLIC.")
		}
	}
	return out, nil
}

// roleExists looks for an organization or a user in pgcerts. A database without
// any user, as tools make one, takes every role.
func (d *definer) roleExists(name string) (bool, error) {
	layout, err := catalog.NewLayout(catalog.Certs)
	if err != nil {
		return false, err
	}
	prefix := layout.IndexPrefix(0)
	any, err := d.anyRow(prefix)
	if err != nil || !any {
		return !any, err
	}
	org, user, isUser := strings.Cut(name, "/")
	prefix = layout.AppendKeyColumn(append([]byte(nil), prefix...), 0, 0, datum.Str(org))
	if isUser {
		prefix = layout.AppendKeyColumn(prefix, 0, 1, datum.Str(user))
	}
	return d.anyRow(prefix)
}

func (d *definer) anyRow(prefix []byte) (bool, error) {
	it := d.env.Txn.Scan(prefixSpan(prefix), false, mvcc.ReadRecorded)
	defer it.Close()
	return it.Next(), it.Err()
}

func (d *definer) grantOnTable(n *pg.GrantStmt, v *pg.RangeVar, roles []string) error {
	t, err := d.findTable(v)
	if err != nil {
		return err
	}
	next := copyTable(t)
	for _, r := range roles {
		next.ACL = next.ACL.With(r, catalog.Select, n.IsGrant)
	}
	return d.editor.PutTable(next)
}

func (d *definer) grantOnFunction(n *pg.GrantStmt, o *pg.ObjectWithArgs, roles []string) error {
	parts, err := stringList(o.Objname)
	if err != nil {
		return err
	}
	schema := ""
	if len(parts) > 1 {
		schema = parts[0]
	}
	word := strings.ToLower(objectName(n.Objtype))
	f, shown, err := d.findFunction(o, schema, parts[len(parts)-1], word)
	if err != nil {
		return err
	}
	if f == nil {
		return pgerr.New(pgerr.UndefinedFunction, "%s %s does not exist", word, shown)
	}
	if f.Language == catalog.SystemLanguage {
		return pgerr.New(pgerr.InsufficientPrivilege, "permission denied: \"%s\" is a system contract", f.Name).
			WithHint("System contracts are for admins.")
	}
	next := *f
	for _, r := range roles {
		next.ACL = next.ACL.With(r, catalog.Execute, n.IsGrant)
	}
	return d.editor.PutFunc(&next)
}
