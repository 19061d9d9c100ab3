package exec

import (
	"cmp"
	"slices"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// vecAgg is one aggregate over all groups of one worker.
type vecAgg interface {
	// grow makes room for groups up to n.
	grow(n int)
	// add takes the rows of sel, whose groups are in gid; arg is nil for count(*).
	add(v *vecRun, gid, sel []int32, arg *datum.Column) error
	// merge adds group from of another worker's aggregate of the same kind to group to.
	merge(other vecAgg, from, to int)
	result(c *builtin.Ctx, g int) (datum.Datum, error)
}

// vecAggProg is a compiled aggregate.
type vecAggProg struct {
	make   func() vecAgg
	arg    *vecExpr
	filter vecFilter
	out    int
}

// vecAggOf compiles an aggregate call; ok is false for what only the row engine
// computes.
func (vc *vecCompiler) vecAggOf(n *plan.Agg) (p vecAggProg, ok bool, err error) {
	f := n.Func
	if n.Distinct || len(n.OrderBy) > 0 || len(n.Direct) > 0 || f.AggKind() != builtin.NormalAgg || f.NewState == nil || len(n.Args) > 1 {
		return p, false, nil
	}
	p.out = n.Out
	if p.filter, err = vc.filter(n.Filter); err != nil {
		return p, false, err
	}
	if len(n.Args) == 1 {
		x, err := vc.expr(n.Args[0])
		if err != nil {
			return p, false, err
		}
		p.arg = &x
	}
	var arg *datum.Desc
	if len(n.Args) == 1 {
		arg = n.Args[0].Type().Desc
	}
	ints := p.arg != nil && p.arg.fixed
	switch {
	case f.Name == "count":
		p.make = func() vecAgg { return &vecCount{} }
	case (f.Name == "sum" || f.Name == "avg") && ints && (arg == datum.Int2 || arg == datum.Int4):
		avg := f.Name == "avg"
		p.make = func() vecAgg { return &vecIntSum{avg: avg} }
	case (f.Name == "sum" || f.Name == "avg") && (arg == datum.Numeric || ints && arg == datum.Int8):
		avg := f.Name == "avg"
		p.make = func() vecAgg { return &vecNumericSum{avg: avg} }
	case (f.Name == "max" || f.Name == "min") && ints && intKeyed(n.Args[0].Type()):
		larger := f.Name == "max"
		p.make = func() vecAgg { return &vecExtreme{larger: larger} }
	default:
		vc.serial = true // states cannot be merged
		types := typesOf(n.Args)
		p.make = func() vecAgg { return &vecStates{fn: f, types: types} }
	}
	return p, true, nil
}

// intKeyed tells that values of a type are ordered and equal as their integers.
func intKeyed(t datum.Type) bool {
	switch t.Desc {
	case datum.BoolType, datum.Int2, datum.Int4, datum.Int8, datum.Date, datum.Time, datum.Timestamp, datum.TimestampTZ, datum.OIDType:
		return true
	}
	return false
}

type vecCount struct{ n []int64 }

func (a *vecCount) grow(n int) { a.n = grown(a.n, n) }

func (a *vecCount) add(_ *vecRun, gid, sel []int32, arg *datum.Column) error {
	if arg == nil || arg.Data == nil && !arg.HasNulls {
		for _, i := range sel {
			a.n[gid[i]]++
		}
		return nil
	}
	for _, i := range sel {
		if !arg.IsNull(int(i)) {
			a.n[gid[i]]++
		}
	}
	return nil
}

func (a *vecCount) merge(other vecAgg, from, to int) { a.n[to] += other.(*vecCount).n[from] }

func (a *vecCount) result(_ *builtin.Ctx, g int) (datum.Datum, error) { return datum.Int(a.n[g]), nil }

// vecIntSum is sum and avg of int2 and int4.
type vecIntSum struct {
	avg    bool
	n, sum []int64
}

func (a *vecIntSum) grow(n int) { a.n, a.sum = grown(a.n, n), grown(a.sum, n) }

func (a *vecIntSum) add(_ *vecRun, gid, sel []int32, arg *datum.Column) error {
	for _, i := range sel {
		if arg.HasNulls && arg.Nulls[i] {
			continue
		}
		g := gid[i]
		a.n[g]++
		a.sum[g] += arg.Ints[i]
	}
	return nil
}

func (a *vecIntSum) merge(other vecAgg, from, to int) {
	o := other.(*vecIntSum)
	a.n[to] += o.n[from]
	a.sum[to] += o.sum[from]
}

func (a *vecIntSum) result(_ *builtin.Ctx, g int) (datum.Datum, error) {
	switch {
	case a.n[g] == 0:
		return datum.Null, nil
	case a.avg:
		return datum.NumericDiv(datum.NumericFromInt64(a.sum[g]), datum.NumericFromInt64(a.n[g]))
	}
	return datum.Int(a.sum[g]), nil
}

// vecNumericSum is sum and avg of numeric and int8.
type vecNumericSum struct {
	avg bool
	sum []datum.NumericSum
}

func (a *vecNumericSum) grow(n int) { a.sum = grown(a.sum, n) }

func (a *vecNumericSum) add(_ *vecRun, gid, sel []int32, arg *datum.Column) error {
	if arg.Data == nil {
		for _, i := range sel {
			if !arg.HasNulls || !arg.Nulls[i] {
				a.sum[gid[i]].AddInt(arg.Ints[i])
			}
		}
		return nil
	}
	for _, i := range sel {
		if d := arg.Data[i]; !d.IsNull() {
			a.sum[gid[i]].Add(d)
		}
	}
	return nil
}

func (a *vecNumericSum) merge(other vecAgg, from, to int) {
	a.sum[to].Merge(&other.(*vecNumericSum).sum[from])
}

func (a *vecNumericSum) result(_ *builtin.Ctx, g int) (datum.Datum, error) {
	s := &a.sum[g]
	switch {
	case s.Count() == 0:
		return datum.Null, nil
	case a.avg:
		return s.Avg()
	}
	return s.Sum()
}

// vecExtreme is max and min of what is ordered as an integer.
type vecExtreme struct {
	larger bool
	any    []bool
	best   []int64
}

func (a *vecExtreme) grow(n int) { a.any, a.best = grown(a.any, n), grown(a.best, n) }

func (a *vecExtreme) add(_ *vecRun, gid, sel []int32, arg *datum.Column) error {
	for _, i := range sel {
		if !arg.HasNulls || !arg.Nulls[i] {
			a.one(int(gid[i]), arg.Ints[i])
		}
	}
	return nil
}

func (a *vecExtreme) one(g int, v int64) {
	if !a.any[g] || a.larger && v > a.best[g] || !a.larger && v < a.best[g] {
		a.any[g], a.best[g] = true, v
	}
}

func (a *vecExtreme) merge(other vecAgg, from, to int) {
	if o := other.(*vecExtreme); o.any[from] {
		a.one(to, o.best[from])
	}
}

func (a *vecExtreme) result(_ *builtin.Ctx, g int) (datum.Datum, error) {
	if !a.any[g] {
		return datum.Null, nil
	}
	return datum.Int(a.best[g]), nil
}

// vecStates is any other aggregate of one argument, fed row by row.
type vecStates struct {
	fn     *builtin.Func
	types  []datum.Type
	states []builtin.AggState
	row    [1]datum.Datum
}

func (a *vecStates) grow(n int) {
	for len(a.states) < n {
		a.states = append(a.states, a.fn.NewState(a.types))
	}
}

func (a *vecStates) add(v *vecRun, gid, sel []int32, arg *datum.Column) error {
	args := a.row[:0]
	for _, i := range sel {
		if arg != nil {
			a.row[0] = arg.Get(int(i))
			args = a.row[:1]
			if a.fn.Strict && args[0].IsNull() {
				continue
			}
			if a.fn.OrderSensitive { // such collect their input
				if err := v.f.hold(datumSize(args[0])); err != nil {
					return err
				}
			}
		}
		if err := a.states[gid[i]].Add(v.ctx, args); err != nil {
			return err
		}
	}
	return nil
}

func (a *vecStates) merge(vecAgg, int, int) { panic("exec: states of one worker only") }

func (a *vecStates) result(c *builtin.Ctx, g int) (datum.Datum, error) { return a.states[g].Result(c) }

func grown[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	return append(s, make([]T, n-len(s))...)
}

// aggSink groups rows.
type aggSink struct {
	p    *batchAggProg
	aggs []vecAgg

	keys    rowStore // of the groups
	arena   datum.Arena
	sums    []uint64
	first   []int64 // where a group's first row stands in the order of all rows
	buckets []int32 // 1 + group
	gid     []int32 // by row of the batch
	hash    []uint64
	byMatch []int32 // 1 + group, by row of the last join's inner side

	at int64 // place of the next row
}

func (p *batchAggProg) newSink() *aggSink {
	s := &aggSink{p: p, gid: make([]int32, batchSize), hash: make([]uint64, batchSize)}
	s.keys.width = len(p.groupBy)
	for i := range p.aggs {
		s.aggs = append(s.aggs, p.aggs[i].make())
	}
	if len(p.groupBy) == 0 {
		s.keys.n = 1
		s.first = append(s.first, 0)
		s.room()
	}
	return s
}

func (s *aggSink) room() {
	for _, a := range s.aggs {
		a.grow(s.keys.n)
	}
}

// take groups the rows of a batch and feeds the aggregates.
func (s *aggSink) take(v *vecRun, b *batch) error {
	if len(s.p.groupBy) > 0 {
		if err := s.group(v, b); err != nil {
			return err
		}
	}
	s.at += int64(len(b.sel))
	for i := range s.p.aggs {
		if err := s.feed(v, b, i); err != nil {
			return err
		}
	}
	return nil
}

func (s *aggSink) feed(v *vecRun, b *batch, i int) (err error) {
	p := &s.p.aggs[i]
	whole := b.sel
	if p.filter != nil {
		spare := append(v.takeSel(), whole...)
		b.sel = spare
		defer func() { b.sel = whole; v.giveSel(spare) }()
		if err := p.filter.apply(v, b); err != nil {
			return err
		}
	}
	if len(b.sel) == 0 {
		return nil
	}
	var arg *datum.Column
	if p.arg != nil {
		if arg, err = p.arg.eval(v, b); err != nil {
			return err
		}
	}
	return s.aggs[i].add(v, s.gid, b.sel, arg)
}

// group finds the group of every row.
func (s *aggSink) group(v *vecRun, b *batch) error {
	if s.p.byMatch && b.match != nil {
		return s.groupByMatch(v, b)
	}
	cols, err := s.columns(v, b)
	if err != nil {
		return err
	}
	s.hashAll(cols, b.sel)
	for k, i := range b.sel {
		g, err := s.find(v, cols, int(i), s.at+int64(k))
		if err != nil {
			return err
		}
		s.gid[i] = g
	}
	return nil
}

func (s *aggSink) columns(v *vecRun, b *batch) ([]*datum.Column, error) {
	cols := make([]*datum.Column, 0, 8)
	for i := range s.p.groupBy {
		c, err := s.p.groupBy[i].eval(v, b)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	return cols, nil
}

// groupByMatch is group where the keys come from the inner side of the last join
// alone: rows that matched one inner row are of one group.
func (s *aggSink) groupByMatch(v *vecRun, b *batch) error {
	top := int32(-1)
	for _, m := range b.match {
		top = max(top, m)
	}
	s.byMatch = grown(s.byMatch, int(top)+1)
	whole, missing := b.sel, v.takeSel()
	for k, i := range whole {
		if m := b.match[k]; m < 0 || s.byMatch[m] == 0 {
			missing = append(missing, i)
		} else {
			s.gid[i] = s.byMatch[m] - 1
		}
	}
	if len(missing) == 0 {
		v.giveSel(missing)
		return nil
	}
	b.sel = missing
	cols, err := s.columns(v, b)
	if err == nil {
		s.hashAll(cols, missing)
		next := 0
		for k, i := range whole {
			if next == len(missing) || missing[next] != i {
				continue
			}
			next++
			if s.gid[i], err = s.find(v, cols, int(i), s.at+int64(k)); err != nil {
				break
			}
			if m := b.match[k]; m >= 0 {
				s.byMatch[m] = s.gid[i] + 1
			}
		}
	}
	b.sel = whole
	v.giveSel(missing)
	return err
}

// hashAll hashes the keys of rows into s.hash.
func (s *aggSink) hashAll(cols []*datum.Column, sel []int32) {
	for _, i := range sel {
		s.hash[i] = 0x51ed270b
	}
	for k, c := range cols {
		if s.p.intKey[k] {
			for _, i := range sel {
				x := uint64(c.Ints[i])
				if c.HasNulls && c.Nulls[i] {
					x = 0x6e756c6c6e756c6c
				}
				s.hash[i] = mixInt(s.hash[i]*31 ^ x)
			}
			continue
		}
		hash := s.p.kinds.hash[k]
		for _, i := range sel {
			if d := c.Get(int(i)); d.IsNull() {
				s.hash[i] = mixInt(s.hash[i])
			} else {
				s.hash[i] = hash(s.hash[i], d)
			}
		}
	}
}

// find returns the group of row i, a new one if need be.
func (s *aggSink) find(v *vecRun, cols []*datum.Column, i int, at int64) (int32, error) {
	if 2*(s.keys.n+1) > len(s.buckets) {
		s.rehash()
	}
	sum, mask := s.hash[i], uint64(len(s.buckets)-1)
	b := (sum ^ sum>>29) & mask
	for ; s.buckets[b] != 0; b = (b + 1) & mask {
		if g := s.buckets[b] - 1; s.sums[g] == sum && s.same(cols, i, int(g)) {
			return g, nil
		}
	}
	row := s.keys.add()
	for k, c := range cols {
		row[k] = s.arena.Clone(c.Get(i))
	}
	if err := s.keys.account(v.f); err != nil {
		return 0, err
	}
	size := stateSize * int64(len(s.aggs))
	s.keys.bytes += size
	if err := v.f.hold(size); err != nil {
		return 0, err
	}
	if v.tooMuch(s.keys.bytes) {
		return 0, errUseRows
	}
	s.sums, s.first = append(s.sums, sum), append(s.first, at)
	s.buckets[b] = int32(s.keys.n)
	s.room()
	return int32(s.keys.n - 1), nil
}

// same compares the keys of row i with those of a group.
func (s *aggSink) same(cols []*datum.Column, i, g int) bool {
	key := s.keys.row(g)
	for k, c := range cols {
		d := c.Get(i)
		switch {
		case d.IsNull() || key[k].IsNull():
			if d.IsNull() != key[k].IsNull() {
				return false
			}
		case s.p.intKey[k]:
			if d.Int() != key[k].Int() {
				return false
			}
		case s.p.kinds.cmp[k](key[k], d) != 0:
			return false
		}
	}
	return true
}

func (s *aggSink) rehash() {
	s.buckets = make([]int32, max(64, 2*len(s.buckets)))
	mask := uint64(len(s.buckets) - 1)
	for g, sum := range s.sums {
		b := (sum ^ sum>>29) & mask
		for s.buckets[b] != 0 {
			b = (b + 1) & mask
		}
		s.buckets[b] = int32(g) + 1
	}
}

// absorb adds the groups of another worker.
func (s *aggSink) absorb(v *vecRun, o *aggSink) error {
	cols := make([]*datum.Column, s.keys.width)
	one := make([]datum.Column, s.keys.width)
	for k := range one {
		one[k] = columnOf(s.p.groupBy[k].fixed, 1)
		cols[k] = &one[k]
	}
	for g := range o.keys.n {
		to := int32(0)
		if s.keys.width > 0 {
			for k, d := range o.keys.row(g) {
				one[k].Set(0, d)
			}
			s.hash[0] = o.sums[g]
			var err error
			if to, err = s.find(v, cols, 0, o.first[g]); err != nil {
				return err
			}
		}
		s.first[to] = min(s.first[to], o.first[g])
		for i := range s.aggs {
			s.aggs[i].merge(o.aggs[i], g, int(to))
		}
	}
	return nil
}

// order lists the groups in the order of their first rows.
func (s *aggSink) order() []int32 {
	order := make([]int32, s.keys.n)
	for g := range order {
		order[g] = int32(g)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(s.first[a], s.first[b]) })
	return order
}
