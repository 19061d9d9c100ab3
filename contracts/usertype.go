package contracts

import (
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// argTypesIn resolves the types of a call, users' types by the catalog that the
// transaction sees: a type in schema blockchain by its bare name, others by
// their qualified one. Having looked is part of the footprint.
func argTypesIn(env *exec.Env, call *block.Call) ([]datum.Type, error) {
	types := make([]datum.Type, len(call.ArgTypes))
	for i, name := range call.ArgTypes {
		t, err := typeByName(name)
		if err != nil {
			if t, err = userType(env, name); err != nil {
				return nil, err
			}
		}
		types[i] = t
	}
	return types, nil
}

func userType(env *exec.Env, name string) (datum.Type, error) {
	none := pgerr.New(pgerr.UndefinedObject, "type \"%s\" does not exist", name)
	node, err := parse.Expression("NULL::" + name)
	if err != nil || node.GetTypeCast() == nil || len(node.GetTypeCast().TypeName.Typmods) > 0 {
		return datum.Type{}, none
	}
	t, reads, err := plan.FindType(node.GetTypeCast().TypeName, env.Catalog, []string{catalog.Blockchain})
	note(env, reads)
	if err != nil || datum.FormatType(datum.T(t.Desc)) != name {
		return datum.Type{}, none // one name only per type may be signed
	}
	return t, nil
}

// verifyDomains applies the constraints of domains to the arguments of a call.
func verifyDomains(env *exec.Env, types []datum.Type, args []datum.Datum) error {
	for i, t := range types {
		if t.Kind != datum.Domain {
			continue
		}
		opts := &plan.Options{Catalog: env.Catalog, SearchPath: []string{catalog.Blockchain}, Contract: true,
			Format: &datum.ContractFormat, Params: []datum.Type{t.Root()}}
		ep, err := plan.ExpressionText("$1", t, opts)
		if err != nil {
			return err
		}
		note(env, ep.Reads)
		x, err := exec.CompileExpr(ep.Expr, ep.Slots, ep.Subqueries, ep.CTEs)
		if err != nil {
			return err
		}
		if _, err := x.Eval(env, args[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// rowResult tells that the columns of the result are the fields of the one
// composite value that f returns.
func rowResult(f *catalog.Func) bool {
	return len(f.OutArgs()) == 0 && f.Ret.Desc != nil && len(f.Ret.Root().Fields) > 0
}
