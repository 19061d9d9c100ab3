package pgcatalog

import (
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// policies is pg_policy.
func policies(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Tables() {
		for i := range t.Policies {
			p := &t.Policies[i]
			roles := make([]datum.Datum, len(p.Roles))
			for k, name := range p.Roles {
				roles[k] = datum.Int(0) // PUBLIC
				if name != catalog.Public {
					roles[k] = datum.Int(int64(env.ownerOID(name)))
				}
			}
			r := next().oid("oid", p.OID).str("polname", p.Name).oid("polrelid", t.OID).char("polcmd", p.Command[0]).
				bool("polpermissive", !p.Restrictive).set("polroles", datum.MakeArray(datum.OIDType, roles))
			if p.Using != "" {
				r.str("polqual", "("+p.Using+")")
			}
			if p.Check != "" {
				r.str("polwithcheck", "("+p.Check+")")
			}
			if err := emit(); err != nil {
				return err
			}
		}
	}
	return nil
}

var policyWords = map[string]string{
	catalog.PolicyAll: "ALL", catalog.PolicySelect: "SELECT", catalog.PolicyInsert: "INSERT",
	catalog.PolicyUpdate: "UPDATE", catalog.PolicyDelete: "DELETE",
}

// policyView is pg_policies.
func policyView(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Tables() {
		for i := range t.Policies {
			p := &t.Policies[i]
			roles := make([]datum.Datum, len(p.Roles))
			for k, name := range p.Roles {
				if name == catalog.Public {
					name = "public"
				}
				roles[k] = datum.Str(name)
			}
			kind := "PERMISSIVE"
			if p.Restrictive {
				kind = "RESTRICTIVE"
			}
			r := next().str("schemaname", t.Schema).str("tablename", t.Name).str("policyname", p.Name).str("permissive", kind).
				set("roles", datum.MakeArray(datum.Name, roles)).str("cmd", policyWords[p.Command])
			if p.Using != "" {
				r.str("qual", "("+p.Using+")")
			}
			if p.Check != "" {
				r.str("with_check", "("+p.Check+")")
			}
			if err := emit(); err != nil {
				return err
			}
		}
	}
	return nil
}
