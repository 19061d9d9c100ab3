package exec

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// orderedSet computes an ordered-set aggregate of one group: in holds the values
// of the sort keys of its rows, order their places in sorted order.
type orderedSet func(a *aggProg, direct []datum.Datum, in *rowStore, order []int32) (datum.Datum, error)

var orderedSets = map[string]orderedSet{
	"mode":         mode,
	"rank":         hypotheticalRank,
	"percent_rank": hypotheticalPercentRank,
	"cume_dist":    hypotheticalCumeDist,
	"dense_rank":   hypotheticalDenseRank,
}

// fractionOf finds the value at a fraction of sorted values.
type fractionOf func(in *rowStore, order []int32, fraction float64) (datum.Datum, error)

// orderedSetOf chooses the implementation for the types of the arguments.
func orderedSetOf(n *plan.Agg) (orderedSet, error) {
	f := n.Func
	if set := orderedSets[f.Name]; set != nil {
		return set, nil
	}
	at := fractionOf(pickDiscrete)
	switch {
	case f.Name == "percentile_cont" && f.Args[1] == datum.Interval:
		at = pickBetween(lerpInterval)
	case f.Name == "percentile_cont":
		at = pickBetween(lerpFloat)
	case f.Name != "percentile_disc":
		return nil, fmt.Errorf("exec: aggregate %s has no implementation", f.Name)
	}
	if f.Args[0] == datum.Float8 {
		return percentile(at), nil
	}
	return percentiles(at, n.OrderBy[0].Expr.Type().Desc), nil
}

func (c *compiler) orderedAgg(a *aggProg, n *plan.Agg) error {
	var err error
	if a.set, err = orderedSetOf(n); err != nil {
		return err
	}
	if a.direct, err = c.exprs(n.Direct); err != nil {
		return err
	}
	// Only hypothetical-set aggregates count null rows.
	a.skipNull = n.Func.AggKind() == builtin.OrderedSetAgg
	a.order, err = c.sortKeys(n.OrderBy)
	return err
}

// resultOfSet ends the group of an ordered-set aggregate. The keys of the group
// are in their slots.
func (it *aggregateIter) resultOfSet(f *frame, a *aggProg, s *aggState) (datum.Datum, error) {
	if err := f.spend(int64(s.input.n)); err != nil {
		return datum.Null, err
	}
	direct := make([]datum.Datum, len(a.direct))
	if _, err := evalArgs(f, a.direct, direct); err != nil {
		return datum.Null, err
	}
	d, err := a.set(a, direct, s.input, sortedOrder(s.input, a.order))
	s.input.reset(f)
	return d, err
}

func checkFraction(p float64) error {
	if math.IsNaN(p) || p < 0 || p > 1 {
		return pgerr.New(pgerr.NumericValueOutOfRange, "percentile value %s is not between 0 and 1", strconv.FormatFloat(p, 'g', 6, 64))
	}
	return nil
}

func percentile(at fractionOf) orderedSet {
	return func(_ *aggProg, direct []datum.Datum, in *rowStore, order []int32) (datum.Datum, error) {
		if direct[0].IsNull() {
			return datum.Null, nil
		}
		p := direct[0].Float()
		if err := checkFraction(p); err != nil {
			return datum.Null, err
		}
		if len(order) == 0 {
			return datum.Null, nil
		}
		return at(in, order, p)
	}
}

// percentiles computes an array of the shape of the array of fractions.
func percentiles(at fractionOf, elem *datum.Desc) orderedSet {
	return func(_ *aggProg, direct []datum.Datum, in *rowStore, order []int32) (datum.Datum, error) {
		if len(order) == 0 || direct[0].IsNull() {
			return datum.Null, nil
		}
		var vals []datum.Datum
		for d := range datum.ArrayElems(direct[0]) {
			if !d.IsNull() {
				if err := checkFraction(d.Float()); err != nil {
					return datum.Null, err
				}
			}
			vals = append(vals, d)
		}
		for i, d := range vals {
			if d.IsNull() {
				continue
			}
			v, err := at(in, order, d.Float())
			if err != nil {
				return datum.Null, err
			}
			vals[i] = v
		}
		return datum.MakeArrayND(elem, datum.ArrayDims(direct[0]), vals)
	}
}

func pickDiscrete(in *rowStore, order []int32, p float64) (datum.Datum, error) {
	k := max(int(math.Ceil(float64(p*float64(len(order))))), 1)
	return in.row(int(order[k-1]))[0], nil
}

func pickBetween(lerp func(lo, hi datum.Datum, part float64) (datum.Datum, error)) fractionOf {
	return func(in *rowStore, order []int32, p float64) (datum.Datum, error) {
		at := float64(p * float64(len(order)-1))
		first, second := math.Floor(at), math.Ceil(at)
		lo := in.row(int(order[int(first)]))[0]
		if first == second {
			return lo, nil
		}
		return lerp(lo, in.row(int(order[int(second)]))[0], at-first)
	}
}

func lerpFloat(lo, hi datum.Datum, part float64) (datum.Datum, error) {
	return datum.Float(lo.Float() + float64(part*(hi.Float()-lo.Float()))), nil
}

func lerpInterval(lo, hi datum.Datum, part float64) (datum.Datum, error) {
	diff, err := datum.IntervalSub(hi, lo)
	if err != nil {
		return datum.Null, err
	}
	if diff, err = datum.IntervalMul(diff, part); err != nil {
		return datum.Null, err
	}
	return datum.IntervalAdd(diff, lo)
}

// mode is the most frequent value; of several the first in order.
func mode(a *aggProg, _ []datum.Datum, in *rowStore, order []int32) (datum.Datum, error) {
	best, most := datum.Null, 0
	for i := 0; i < len(order); {
		first := in.row(int(order[i]))
		n := 1
		for i+n < len(order) && compareKeys(a.order, first, in.row(int(order[i+n]))) == 0 {
			n++
		}
		if n > most {
			best, most = first[0], n
		}
		i += n
	}
	return best, nil
}

// rowsBefore counts the rows that come before the hypothetical row, and with it
// if equal ones count.
func rowsBefore(a *aggProg, row []datum.Datum, in *rowStore, equal bool) int64 {
	n := int64(0)
	for i := range in.n {
		if c := compareKeys(a.order, in.row(i), row); c < 0 || c == 0 && equal {
			n++
		}
	}
	return n
}

func hypotheticalRank(a *aggProg, row []datum.Datum, in *rowStore, _ []int32) (datum.Datum, error) {
	return datum.Int(rowsBefore(a, row, in, false) + 1), nil
}

func hypotheticalPercentRank(a *aggProg, row []datum.Datum, in *rowStore, _ []int32) (datum.Datum, error) {
	if in.n == 0 {
		return datum.Float(0), nil
	}
	return datum.Float(float64(rowsBefore(a, row, in, false)) / float64(in.n)), nil
}

func hypotheticalCumeDist(a *aggProg, row []datum.Datum, in *rowStore, _ []int32) (datum.Datum, error) {
	return datum.Float(float64(rowsBefore(a, row, in, true)+1) / float64(in.n+1)), nil
}

func hypotheticalDenseRank(a *aggProg, row []datum.Datum, in *rowStore, order []int32) (datum.Datum, error) {
	n := int64(0)
	var last []datum.Datum
	for _, i := range order {
		r := in.row(int(i))
		if compareKeys(a.order, r, row) >= 0 {
			break
		}
		if last == nil || compareKeys(a.order, last, r) != 0 {
			n++
		}
		last = r
	}
	return datum.Int(n + 1), nil
}
