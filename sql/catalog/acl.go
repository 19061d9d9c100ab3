package catalog

import (
	"slices"
	"strings"
)

// Privilege is one letter of pg_proc.proacl and pg_class.relacl.
type Privilege string

// The privileges that exist: on functions and on relations.
const (
	Execute Privilege = "X"
	Select  Privilege = "r"
)

// Public is the role that everyone has.
const Public = ""

// ACL is who may use an object besides its owner. An object without one may be
// used by everyone: as in PostgreSQL for functions, and unlike it for tables,
// whose rows every organization holds anyway.
type ACL struct {
	Grants []Grant // by role
}

// Grant is what one role may do: an organization, a user (org/user) or Public.
type Grant struct {
	Role       string
	Privileges string // letters, sorted
}

// Role is who asks. The zero Role is the node itself, which may do everything.
type Role struct{ Org, User string }

// RoleOf reads the role of an owner.
func RoleOf(owner string) Role {
	org, user, _ := strings.Cut(owner, "/")
	return Role{org, user}
}

// String is the name of the role as owners and grants have it.
func (r Role) String() string { return r.Org + "/" + r.User }

// Allows tells whether a role may use an object of this owner.
func (a *ACL) Allows(r Role, owner string, p Privilege) bool {
	if a == nil || r == (Role{}) || r.String() == owner {
		return true
	}
	return slices.ContainsFunc(a.Grants, func(g Grant) bool {
		return (g.Role == Public || g.Role == r.Org || g.Role == r.String()) && strings.Contains(g.Privileges, string(p))
	})
}

// With returns the list with a privilege given to a role, or taken from it. From
// no list at all, Public has the privilege.
func (a *ACL) With(role string, p Privilege, give bool) *ACL {
	next := &ACL{}
	if a == nil {
		next.Grants = []Grant{{Public, string(p)}}
	} else {
		next.Grants = slices.Clone(a.Grants)
	}
	i, found := slices.BinarySearchFunc(next.Grants, role, func(g Grant, role string) int { return strings.Compare(g.Role, role) })
	if !found {
		if !give {
			return next
		}
		next.Grants = slices.Insert(next.Grants, i, Grant{Role: role})
	}
	g := &next.Grants[i]
	g.Privileges = strings.ReplaceAll(g.Privileges, string(p), "")
	if give {
		letters := strings.Split(g.Privileges+string(p), "")
		slices.Sort(letters)
		g.Privileges = strings.Join(letters, "")
	}
	if g.Privileges == "" {
		next.Grants = slices.Delete(next.Grants, i, i+1)
	}
	return next
}
