package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// informationFuncs are the functions of information_schema that clients call.
var informationFuncs = map[string]*builtin.Func{"_pg_expandarray": expandArray}

// expandArray is information_schema._pg_expandarray(anyarray): the elements of
// a one-dimensional array with their positions from 1.
var expandArray = &builtin.Func{
	OID: 13208, Name: "_pg_expandarray", Args: []*datum.Desc{datum.AnyArray}, Ret: datum.Record, RetSet: true,
	Kind: builtin.Scalar, Strict: true, Volatility: builtin.Immutable,
	BindSet: func(args []datum.Type) (builtin.SetEval, []builtin.Column, error) {
		elem := args[0].Elem
		if elem == nil {
			return nil, nil, pgerr.New(pgerr.DatatypeMismatch, "argument of _pg_expandarray must be an array")
		}
		cols := []builtin.Column{{Name: "x", Type: datum.T(elem)}, {Name: "n", Type: datum.T(datum.Int4)}}
		return expandElements, cols, nil
	},
}

func expandElements(c *builtin.Ctx, args []datum.Datum, emit func([]datum.Datum) error) error {
	row, n := make([]datum.Datum, 2), int64(0)
	for v := range datum.ArrayElems(args[0]) {
		if err := c.Budget.Spend(1); err != nil {
			return err
		}
		n++
		row[0], row[1] = v, datum.Int(n)
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}

// unnestTogether is unnest(a, b, ...) in FROM: the arrays side by side, shorter
// ones padded with nulls.
func (p *planner) unnestTogether(call *pg.FuncCall, s *scope) (*FuncScan, []column, error) {
	scan := &FuncScan{Builtin: &builtin.Func{Name: "unnest", RetSet: true, Kind: builtin.Scalar, Volatility: builtin.Immutable}}
	var cols []column
	var sets []builtin.SetEval
	var widths []int
	for _, a := range call.Args {
		e, err := p.expr(a, s, "functions in FROM")
		if err != nil {
			return nil, nil, err
		}
		c, err := p.choose([]string{"unnest"}, []Expr{e}, nil, false, false, call.Location)
		if err != nil {
			return nil, nil, err
		}
		set, outs, err := c.builtin.BindRows(exprTypes(c.args), c.ret)
		if err != nil {
			return nil, nil, p.locate(err, call.Location)
		}
		scan.Args, sets, widths = append(scan.Args, c.args...), append(sets, set), append(widths, len(outs))
		for _, o := range outs {
			cols = append(cols, column{name: o.Name, typ: o.Type})
		}
	}
	scan.Set = zipped(sets, widths)
	return scan, cols, nil
}

// zipped runs sets[i] over argument i and puts their rows side by side.
func zipped(sets []builtin.SetEval, widths []int) builtin.SetEval {
	return func(c *builtin.Ctx, args []datum.Datum, emit func([]datum.Datum) error) error {
		var rows [][]datum.Datum
		width := 0
		for _, w := range widths {
			width += w
		}
		at := 0
		for i, set := range sets {
			n := 0
			place := func(row []datum.Datum) error {
				if n == len(rows) {
					rows = append(rows, nulls(width))
				}
				copy(rows[n][at:], row)
				n++
				return nil
			}
			if !args[i].IsNull() {
				if err := set(c, args[i:i+1], place); err != nil {
					return err
				}
			}
			at += widths[i]
		}
		for _, row := range rows {
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}
}

func nulls(n int) []datum.Datum {
	row := make([]datum.Datum, n)
	for i := range row {
		row[i] = datum.Null
	}
	return row
}
