package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// rowsFrom is ROWS FROM (f(...), g(...), ...): functions side by side, shorter
// ones padded with nulls.
func (p *planner) rowsFrom(n *pg.RangeFunction, s *scope) (string, *FuncScan, []column, error) {
	out := &FuncScan{}
	var cols []column
	name := ""
	for _, f := range n.Functions {
		items := f.GetList().Items
		var defs []*pg.Node
		if len(items) > 1 {
			defs = items[1].GetList().GetItems()
		}
		one, scan, more, err := p.definedScan(items[0], defs, s)
		if err != nil {
			return "", nil, nil, err
		}
		if name == "" {
			name = one
		}
		scan.Ordinality = -1
		out.Parts, out.Slots, cols = append(out.Parts, scan), append(out.Slots, scan.Slots...), append(cols, more...)
	}
	return name, out, cols, nil
}

// definedScan is a function in FROM with an optional column definition list.
func (p *planner) definedScan(fn *pg.Node, defs []*pg.Node, s *scope) (string, *FuncScan, []column, error) {
	call := fn.GetFuncCall()
	if call == nil {
		if len(defs) > 0 {
			return "", nil, nil, p.errAt(location(fn), pgerr.SyntaxError, "a column definition list is only allowed for functions returning \"record\"")
		}
		return p.functionScan(fn, s)
	}
	if len(defs) == 0 && !p.returnsRecord(call) {
		return p.functionScan(fn, s)
	}
	c, err := p.resolveCall(call, s, "functions in FROM")
	if err != nil {
		return "", nil, nil, err
	}
	if c.user != nil {
		if c.user.Ret.Root().Desc != datum.Record || len(c.user.OutArgs()) > 0 {
			return "", nil, nil, p.errAt(call.Location, pgerr.SyntaxError, "a column definition list is only allowed for functions returning \"record\"")
		}
		return "", nil, nil, p.at(pgerr.NotBuilt("a column definition list for a user-defined function is not supported").
			WithHint("Declare the columns with RETURNS TABLE or OUT arguments."), call.Location)
	}
	cols, err := p.definedColumns(defs)
	if err != nil {
		return "", nil, nil, err
	}
	set, err := c.builtin.BindColumns(cols)
	if err != nil {
		return "", nil, nil, p.locate(err, call.Location)
	}
	if len(defs) == 0 {
		return "", nil, nil, p.errAt(call.Location, pgerr.SyntaxError, "a column definition list is required for functions returning \"record\"")
	}
	if err := p.admit(c.builtin, call.Location); err != nil {
		return "", nil, nil, err
	}
	f := *c.builtin
	if !f.RetSet { // a row of nulls for a null argument, where a set has none
		set, f.Strict = rowOfNulls(set, len(cols)), false
	}
	scan := &FuncScan{Builtin: &f, Set: set, Args: c.args}
	list := make([]column, len(cols))
	for i, col := range cols {
		list[i] = column{name: col.Name, typ: col.Type}
	}
	return funcName(call), scan, p.fillScan(scan, list), nil
}

func rowOfNulls(set builtin.SetEval, width int) builtin.SetEval {
	return func(c *builtin.Ctx, args []datum.Datum, emit func([]datum.Datum) error) error {
		if args[0].IsNull() {
			return emit(nulls(width))
		}
		return set(c, args, emit)
	}
}

// returnsRecord tells that the name means built-in functions whose columns the
// query has to define.
func (p *planner) returnsRecord(call *pg.FuncCall) bool {
	parts, _ := nameParts(call.Funcname)
	if len(parts) > 1 && parts[0] != catalog.PgCatalog {
		return false
	}
	return slices.ContainsFunc(builtin.LookupFuncs(parts[len(parts)-1]), func(f *builtin.Func) bool {
		_, err := f.BindColumns(nil)
		return err == nil
	})
}

func (p *planner) definedColumns(defs []*pg.Node) ([]builtin.Column, error) {
	var cols []builtin.Column
	for _, d := range defs {
		def := d.GetColumnDef()
		if slices.ContainsFunc(cols, func(c builtin.Column) bool { return c.Name == def.Colname }) {
			return nil, p.errAt(def.Location, pgerr.DuplicateColumn, "column name \"%s\" specified more than once", def.Colname)
		}
		t, err := p.typeName(def.TypeName)
		if err != nil {
			return nil, err
		}
		cols = append(cols, builtin.Column{Name: def.Colname, Type: t})
	}
	return cols, nil
}
