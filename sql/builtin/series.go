package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func zeroStep() error {
	return pgerr.New(pgerr.InvalidParameterValue, "step size cannot equal zero")
}

// emitter spends one step a row.
func emitter(c *Ctx, emit func([]datum.Datum) error) func(v datum.Datum) error {
	row := make([]datum.Datum, 1)
	return func(v datum.Datum) error {
		if err := c.Budget.Spend(1); err != nil {
			return err
		}
		row[0] = v
		return emit(row)
	}
}

func intSeries(w *width) SetEval {
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		v, stop, step := a[0].Int(), a[1].Int(), int64(1)
		if len(a) == 3 {
			if step = a[2].Int(); step == 0 {
				return zeroStep()
			}
		}
		out := emitter(c, emit)
		for step > 0 && v <= stop || step < 0 && v >= stop {
			if err := out(datum.Int(v)); err != nil {
				return err
			}
			next := v + step
			if (v^next)&(step^next) < 0 || next < w.min || next > w.max {
				return nil // past the end of the type
			}
			v = next
		}
		return nil
	}
}

func numericSeries(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
	step := datum.NumericFromInt64(1)
	for i, name := range []string{"start", "stop", "step size"}[:len(a)] {
		if i < 2 {
			name += " value"
		}
		if datum.NumericIsNaN(a[i]) {
			return pgerr.New(pgerr.InvalidParameterValue, "%s cannot be NaN", name)
		}
		if datum.NumericIsInf(a[i]) != 0 {
			return pgerr.New(pgerr.InvalidParameterValue, "%s cannot be infinity", name)
		}
	}
	if len(a) == 3 {
		step = a[2]
	}
	sign := datum.NumericCmp(step, datum.NumericFromInt64(0))
	if sign == 0 {
		return zeroStep()
	}
	out := emitter(c, emit)
	var err error
	for v := a[0]; sign*datum.NumericCmp(v, a[1]) <= 0; {
		if err = out(v); err != nil {
			return err
		}
		if v, err = datum.NumericAdd(v, step); err != nil {
			return err
		}
	}
	return nil
}

func timestampSeries(add func(c *Ctx, ts, step datum.Datum) (datum.Datum, error)) SetEval {
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		zero := datum.MakeInterval(0, 0, 0)
		sign := datum.Interval.Compare(a[2], zero)
		if sign == 0 {
			return zeroStep()
		}
		out := emitter(c, emit)
		var err error
		for v := a[0]; sign > 0 && v.Int() <= a[1].Int() || sign < 0 && v.Int() >= a[1].Int(); {
			if err = out(v); err != nil {
				return err
			}
			if v, err = add(c, v, a[2]); err != nil {
				return err
			}
		}
		return nil
	}
}

func subscripts(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
	d, ok := dimension(a)
	if !ok {
		return nil
	}
	out := emitter(c, emit)
	for i := range d.Len {
		v := d.Lower + i
		if len(a) == 3 && a[2].Bool() {
			v = d.Lower + d.Len - 1 - i
		}
		if err := out(datum.Int(int64(v))); err != nil {
			return err
		}
	}
	return nil
}

// bindUnnest spreads an array, of any number of dimensions, over rows; elements
// of a composite type over columns too.
func bindUnnest(args []datum.Type) (SetEval, []Column, error) {
	elem := elemOf(args[0])
	if isComposite(elem) {
		cols := make([]Column, len(elem.Fields))
		for i, f := range elem.Fields {
			cols[i] = Column{Name: f.Name, Type: f.Type}
		}
		return unnestComposite(len(cols)), cols, nil
	}
	cols := []Column{{Name: "unnest", Type: datum.Type{Desc: elem, Mod: args[0].Mod}}}
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		out := emitter(c, emit)
		for v := range datum.ArrayElems(a[0]) {
			if err := out(v); err != nil {
				return err
			}
		}
		return nil
	}, cols, nil
}

func unnestComposite(width int) SetEval {
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		nulls := make([]datum.Datum, width)
		for i := range nulls {
			nulls[i] = datum.Null
		}
		for v := range datum.ArrayElems(a[0]) {
			if err := c.Budget.Spend(1); err != nil {
				return err
			}
			row := nulls
			if !v.IsNull() {
				_, row = datum.RecordFields(v)
			}
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}
}

var seriesSets = setMap{
	"generate_series_int4": intSeries(&width4), "generate_series_step_int4": intSeries(&width4),
	"generate_series_int8": intSeries(&width8), "generate_series_step_int8": intSeries(&width8),
	"generate_series_numeric": numericSeries, "generate_series_step_numeric": numericSeries,
	"generate_series_timestamp": timestampSeries(func(_ *Ctx, ts, step datum.Datum) (datum.Datum, error) {
		return datum.TimestampAddInterval(ts, step)
	}),
	"generate_series_timestamptz": timestampSeries(func(c *Ctx, ts, step datum.Datum) (datum.Datum, error) {
		return datum.TimestampTZAddInterval(ts, step, c.Format.Zone)
	}),
	"generate_subscripts": subscripts, "generate_subscripts_nodir": subscripts,
}

var seriesBindSets = bindSetMap{"array_unnest": bindUnnest}
