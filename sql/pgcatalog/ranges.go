package pgcatalog

import (
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
)

// ranges makes the rows of pg_range.
func ranges(_ *Env, next func() *row, emit func() error) error {
	for _, d := range datum.Builtins() {
		if !d.IsRange() {
			continue
		}
		r := next().oid("rngtypid", d.OID).oid("rngsubtype", d.Sub.OID).oid("rngmultitypid", d.Multi.OID)
		r.zeros("rngcollation", "rngsubopc", "rngcanonical", "rngsubdiff")
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
	return nil
}
