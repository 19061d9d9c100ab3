package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// sequenceDefault is the default of an identity or serial column: nextval of
// its sequence, which it knows by OID.
func (p *planner) sequenceDefault(col *catalog.Column) (Expr, error) {
	f := builtin.LookupFuncs("nextval")[0]
	e, err := p.call(f, []Expr{NewConst(datum.T(datum.RegClass), datum.Int(int64(col.Sequence)))}, datum.T(f.Ret), -1)
	if err != nil {
		return nil, err
	}
	return p.assign(e, col.Type, -1)
}

// mayOverride refuses a value for a column GENERATED ALWAYS AS IDENTITY, unless
// OVERRIDING says otherwise.
func (p *planner) mayOverride(col *catalog.Column, loc int32) error {
	if col.Identity != "a" || p.override == pg.OverridingKind_OVERRIDING_SYSTEM_VALUE || p.override == pg.OverridingKind_OVERRIDING_USER_VALUE {
		return nil
	}
	return p.errAt(loc, pgerr.GeneratedAlways, "cannot insert a non-DEFAULT value into column \"%s\"", col.Name).
		WithDetail("Column \"%s\" is an identity column defined as GENERATED ALWAYS.", col.Name).
		WithHint("Use OVERRIDING SYSTEM VALUE to override.")
}

// ignoresValue tells that a given value gives way to the column's own sequence.
func (p *planner) ignoresValue(col *catalog.Column) bool {
	return col.Identity != "" && p.override == pg.OverridingKind_OVERRIDING_USER_VALUE
}
