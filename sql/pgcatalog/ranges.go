package pgcatalog

import (
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
)

// ranges makes the rows of pg_range.
func ranges(env *Env, next func() *row, emit func() error) error {
	one := func(d *datum.Desc) *row {
		r := next().oid("rngtypid", d.OID).oid("rngsubtype", d.Sub.OID).oid("rngmultitypid", d.Multi.OID)
		r.zeros("rngsubopc", "rngcanonical", "rngsubdiff").oid("rngcollation", collationOf(datum.T(d.Sub)))
		return r
	}
	for _, d := range datum.Builtins() {
		if !d.IsRange() {
			continue
		}
		r := one(d)
		for _, f := range builtin.LookupFuncs(d.Name + "_canonical") {
			r.oid("rngcanonical", f.OID)
		}
		for _, f := range builtin.LookupFuncs(d.Name + "_subdiff") {
			r.oid("rngsubdiff", f.OID)
		}
		if err := emit(); err != nil {
			return err
		}
	}
	for _, t := range env.Catalog.Types() {
		if !t.Desc.IsRange() {
			continue
		}
		one(t.Desc).oid("rngsubdiff", t.SubtypeDiff)
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}
