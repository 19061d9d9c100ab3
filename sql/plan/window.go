package plan

import (
	"cmp"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Window computes window functions over the rows of Child, which come sorted by
// Partition and then Order. Rows pass in that order, every partition as a whole.
type Window struct {
	Child     Node
	Partition []Expr
	Order     []SortKey
	Frame     Frame
	Funcs     []WindowFunc
	Slots     []int // what to keep of every row
}

// WindowFunc is one call of a [Window]: of a window function or of an aggregate.
type WindowFunc struct {
	Func   *builtin.Func
	Args   []Expr
	Filter Expr // of an aggregate; nil = none
	Type   datum.Type
	Out    int
	At     Place
}

// FrameMode is the unit in which a frame counts.
type FrameMode uint8

// The modes of frames.
const (
	RangeFrame FrameMode = iota
	RowsFrame
	GroupsFrame
)

// BoundKind is the kind of one end of a frame.
type BoundKind uint8

// The ends of frames, in their order.
const (
	UnboundedPreceding BoundKind = iota
	OffsetPreceding
	CurrentRow
	OffsetFollowing
	UnboundedFollowing
)

// Exclusion is what a frame leaves out around the current row.
type Exclusion uint8

// The exclusions.
const (
	ExcludeNoOthers Exclusion = iota
	ExcludeCurrentRow
	ExcludeGroup
	ExcludeTies
)

// Frame is the part of a partition that a function looks at. The zero value but
// for End = CurrentRow is the default.
type Frame struct {
	Mode       FrameMode
	Start, End FrameBound
	Exclude    Exclusion
}

// FrameBound is one end of a frame. Offset is a bigint in ROWS and GROUPS mode;
// in RANGE mode it is of the type that InRange takes.
type FrameBound struct {
	Kind    BoundKind
	Offset  Expr
	InRange builtin.InRange
}

func (*Window) node() {}

// The bits of frameOptions in PostgreSQL's nodes/parsenodes.h.
const (
	frameNonDefault       = 0x00001
	frameRange            = 0x00002
	frameRows             = 0x00004
	frameGroups           = 0x00008
	frameStartPreceding   = 0x00020
	frameEndPreceding     = 0x00040
	frameStartFollowing   = 0x00080
	frameEndFollowing     = 0x00100
	frameStartCurrent     = 0x00200
	frameEndCurrent       = 0x00400
	frameStartOffsetPrec  = 0x00800
	frameEndOffsetPrec    = 0x01000
	frameStartOffsetFoll  = 0x02000
	frameEndOffsetFoll    = 0x04000
	frameExcludeCurrent   = 0x08000
	frameExcludeGroup     = 0x10000
	frameExcludeTies      = 0x20000
	windowFunctionsNested = "window function"
)

// windowing collects the windows of one query level.
type windowing struct {
	named []*windowSpec
	specs []*windowSpec // all that have been analyzed, in order
}

// windowSpec is one window: of the WINDOW clause or of an OVER.
type windowSpec struct {
	name  string
	def   *pg.WindowDef
	node  Window // Child, Slots and later rewrites aside
	print []byte // fingerprint, for sharing
}

func (w *windowing) used() bool {
	return w != nil && slices.ContainsFunc(w.specs, func(s *windowSpec) bool { return len(s.node.Funcs) > 0 })
}

// isResult tells that a slot holds the result of a window function.
func (w *windowing) isResult(slot int) bool {
	if w == nil {
		return false
	}
	for _, s := range w.specs {
		if slices.ContainsFunc(s.node.Funcs, func(f WindowFunc) bool { return f.Out == slot }) {
			return true
		}
	}
	return false
}

// insideWindow is s for the arguments and clauses of a window function, where
// aggregates may stand but no further window function.
func (s *scope) insideWindow(where string) *scope {
	in := *s
	in.noWindows, in.sets = where, nil
	return &in
}

// windowClause analyzes WINDOW name AS (...), ....
func (p *planner) windowClause(list []*pg.Node, s *scope) error {
	for _, n := range list {
		def := n.GetWindowDef()
		if s.windows.find(def.Name) != nil {
			return p.errAt(def.Location, pgerr.WindowingError, "window \"%s\" is already defined", def.Name)
		}
		spec, err := p.windowSpec(def, s)
		if err != nil {
			return err
		}
		spec.name = def.Name
		s.windows.named = append(s.windows.named, spec)
		s.windows.specs = append(s.windows.specs, spec)
	}
	return nil
}

func (w *windowing) find(name string) *windowSpec {
	for _, s := range w.named {
		if s.name == name {
			return s
		}
	}
	return nil
}

// overWindow finds or analyzes the window of an OVER.
func (p *planner) overWindow(def *pg.WindowDef, s *scope) (*windowSpec, error) {
	if def.Name != "" {
		if spec := s.windows.find(def.Name); spec != nil {
			return spec, nil
		}
		return nil, p.errAt(def.Location, pgerr.UndefinedObject, "window \"%s\" does not exist", def.Name)
	}
	spec, err := p.windowSpec(def, s)
	if err != nil {
		return nil, err
	}
	for _, o := range s.windows.specs {
		if string(o.print) == string(spec.print) {
			return o, nil
		}
	}
	s.windows.specs = append(s.windows.specs, spec)
	return spec, nil
}

// windowSpec analyzes what stands in the parentheses of a window.
func (p *planner) windowSpec(def *pg.WindowDef, s *scope) (*windowSpec, error) {
	spec := &windowSpec{def: def}
	w := &spec.node
	var base *windowSpec
	if def.Refname != "" {
		if base = s.windows.find(def.Refname); base == nil {
			return nil, p.errAt(def.Location, pgerr.UndefinedObject, "window \"%s\" does not exist", def.Refname)
		}
	}
	in := s.insideWindow("window definitions")
	for _, n := range def.PartitionClause {
		e, err := p.windowKey(n, in, "PARTITION BY")
		if err != nil {
			return nil, err
		}
		w.Partition = append(w.Partition, e)
	}
	for _, n := range def.OrderClause {
		sb := n.GetSortBy()
		e, err := p.windowKey(sb.Node, in, "window ORDER BY")
		if err != nil {
			return nil, err
		}
		k := SortKey{Expr: e}
		if k.Desc, k.NullsFirst, err = p.direction(sb); err != nil {
			return nil, err
		}
		w.Order = append(w.Order, k)
	}
	if base != nil {
		if err := p.inheritWindow(spec, base); err != nil {
			return nil, err
		}
	}
	s.absorb(in)
	if err := p.frame(spec, s); err != nil {
		return nil, err
	}
	spec.print = windowPrint(w)
	return spec, nil
}

func (p *planner) windowKey(n *pg.Node, in *scope, clause string) (Expr, error) {
	e, err := p.expr(n, in, clause)
	if err != nil {
		return nil, err
	}
	if e, err = p.settle(e); err != nil {
		return nil, err
	}
	if t := e.Type(); t.Compare == nil && t.Root().Compare == nil {
		what := "ordering"
		if clause == "PARTITION BY" {
			what = "equality"
		}
		return nil, p.errAt(location(n), pgerr.UndefinedFunction, "could not identify an %s operator for type %s", what, datum.FormatType(t))
	}
	return e, nil
}

// inheritWindow copies PARTITION BY and ORDER BY of an existing window.
func (p *planner) inheritWindow(spec, base *windowSpec) error {
	def, w := spec.def, &spec.node
	switch {
	case len(w.Partition) > 0:
		return p.errAt(def.Location, pgerr.WindowingError, "cannot override PARTITION BY clause of window \"%s\"", def.Refname)
	case len(w.Order) > 0 && len(base.node.Order) > 0:
		return p.errAt(def.Location, pgerr.WindowingError, "cannot override ORDER BY clause of window \"%s\"", def.Refname)
	case base.def.FrameOptions&frameNonDefault != 0:
		e := p.errAt(def.Location, pgerr.WindowingError, "cannot copy window \"%s\" because it has a frame clause", def.Refname)
		if len(w.Order) == 0 && def.FrameOptions&frameNonDefault == 0 {
			e = e.WithHint("Omit the parentheses in this OVER clause.")
		}
		return e
	}
	w.Partition = base.node.Partition
	if len(w.Order) == 0 {
		w.Order = base.node.Order
	}
	return nil
}

// frame analyzes the frame clause of a window.
func (p *planner) frame(spec *windowSpec, s *scope) error {
	o, f := spec.def.FrameOptions, &spec.node.Frame
	f.Start.Kind = boundKind(o, frameStartPreceding, frameStartOffsetPrec, frameStartCurrent, frameStartOffsetFoll)
	f.End.Kind = boundKind(o, frameEndPreceding, frameEndOffsetPrec, frameEndCurrent, frameEndOffsetFoll)
	switch {
	case o&frameRows != 0:
		f.Mode = RowsFrame
	case o&frameGroups != 0:
		f.Mode = GroupsFrame
		if len(spec.node.Order) == 0 {
			return p.errAt(spec.def.Location, pgerr.WindowingError, "GROUPS mode requires an ORDER BY clause")
		}
	}
	switch {
	case o&frameExcludeCurrent != 0:
		f.Exclude = ExcludeCurrentRow
	case o&frameExcludeGroup != 0:
		f.Exclude = ExcludeGroup
	case o&frameExcludeTies != 0:
		f.Exclude = ExcludeTies
	}
	if err := p.frameOffset(&f.Start, spec, spec.def.StartOffset, s); err != nil {
		return err
	}
	return p.frameOffset(&f.End, spec, spec.def.EndOffset, s)
}

func boundKind(options, unbounded, preceding, current, following int32) BoundKind {
	switch {
	case options&unbounded != 0:
		return UnboundedPreceding
	case options&preceding != 0:
		return OffsetPreceding
	case options&current != 0:
		return CurrentRow
	case options&following != 0:
		return OffsetFollowing
	}
	return UnboundedFollowing
}

// frameOffset analyzes the offset of a bound; it may not read the rows.
func (p *planner) frameOffset(b *FrameBound, spec *windowSpec, n *pg.Node, s *scope) error {
	if b.Kind != OffsetPreceding && b.Kind != OffsetFollowing {
		return nil
	}
	mode := [...]string{RangeFrame: "RANGE", RowsFrame: "ROWS", GroupsFrame: "GROUPS"}[spec.node.Frame.Mode]
	at := s.insideWindow("window " + mode)
	at.noAggs = "window " + mode
	e, err := p.expr(n, at, "window "+mode)
	if err != nil {
		return err
	}
	s.absorb(at)
	if spec.node.Frame.Mode == RangeFrame {
		e, err = p.rangeOffset(b, spec, e, n)
	} else {
		if t := e.Type(); t.Desc != datum.Unknown && !builtin.CanCoerce(t.Desc, datum.Int8, builtin.Assignment) {
			return p.errAt(location(n), pgerr.DatatypeMismatch, "argument of %s must be type bigint, not type %s", mode, datum.FormatType(t))
		}
		e, err = p.coerce(e, datum.T(datum.Int8), builtin.Assignment, location(n))
	}
	if err != nil {
		return err
	}
	variables := false
	walk(e, func(x Expr) {
		sl, ok := x.(*Slot)
		variables = variables || ok && slices.Contains(s.rels, p.owner[sl.Index])
	})
	if variables {
		return p.errAt(location(n), pgerr.InvalidColumnReference, "argument of %s must not contain variables", mode)
	}
	b.Offset = e
	return nil
}

// rangeOffset finds how an offset is added to the column that the window is
// ordered by.
func (p *planner) rangeOffset(b *FrameBound, spec *windowSpec, e Expr, n *pg.Node) (Expr, error) {
	if len(spec.node.Order) != 1 {
		return nil, p.errAt(spec.def.Location, pgerr.WindowingError, "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")
	}
	col := spec.node.Order[0].Expr.Type().Root()
	in, typ, err := builtin.FindInRange(col, e.Type())
	if err != nil {
		return nil, p.locate(err, location(n))
	}
	b.InRange = in
	return p.coerce(e, typ, builtin.Implicit, location(n))
}

// windowPrint is equal for windows that are the same.
func windowPrint(w *Window) []byte {
	var dst []byte
	exprs := func(list []Expr) {
		for _, e := range list {
			if e != nil {
				dst = fingerprint(dst, e)
			}
			dst = append(dst, ';')
		}
	}
	exprs(w.Partition)
	dst = append(dst, '|')
	for _, k := range w.Order {
		exprs([]Expr{k.Expr})
		dst = append(dst, flag(k.Desc), flag(k.NullsFirst))
	}
	f := &w.Frame
	dst = append(dst, '|', byte(f.Mode), byte(f.Start.Kind), byte(f.End.Kind), byte(f.Exclude))
	exprs([]Expr{f.Start.Offset, f.End.Offset})
	return dst
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// windowCall analyzes a call with OVER and makes it a reference to its result.
func (p *planner) windowCall(n *pg.FuncCall, s *scope, clause string) (Expr, error) {
	in := s.insideWindow(windowFunctionsNested)
	c, err := p.resolveCall(n, in, clause)
	if err != nil {
		return nil, err
	}
	if err := p.windowCallForm(n, c); err != nil {
		return nil, err
	}
	if err := p.windowAllowed(s, clause, n.Location); err != nil {
		return nil, err
	}
	if err := p.admit(c.builtin, n.Location); err != nil {
		return nil, err
	}
	fn := WindowFunc{Func: c.builtin, Args: c.args, Type: c.ret, At: p.place(n.Location)}
	for i := range fn.Args {
		if fn.Args[i], err = p.settle(fn.Args[i]); err != nil {
			return nil, err
		}
	}
	if n.AggFilter != nil {
		if fn.Filter, err = p.condition(n.AggFilter, in, "FILTER"); err != nil {
			return nil, err
		}
	}
	s.absorb(in)
	spec, err := p.overWindow(n.Over, s)
	if err != nil {
		return nil, err
	}
	for _, o := range spec.node.Funcs {
		if o.Func == fn.Func && sameList(funcExprs(&o), funcExprs(&fn)) {
			return NewSlot(c.ret, o.Out, c.builtin.Name), nil
		}
	}
	fn.Out = p.newSlot()
	spec.node.Funcs = append(spec.node.Funcs, fn)
	return NewSlot(c.ret, fn.Out, c.builtin.Name), nil
}

// windowCallForm refuses what cannot stand together with OVER.
func (p *planner) windowCallForm(n *pg.FuncCall, c *callee) error {
	fail := func(code pgerr.Code, format string, args ...any) error {
		return p.errAt(n.Location, code, format, args...)
	}
	if c.user != nil || c.builtin.Kind == builtin.Scalar {
		return fail(pgerr.WrongObjectType, "OVER specified, but %s is not a window function nor an aggregate function", funcName(n))
	}
	aggregate := c.builtin.Kind == builtin.Aggregate
	switch {
	case aggregate && n.AggWithinGroup:
		return fail(pgerr.FeatureNotSupported, "OVER is not supported for ordered-set aggregate %s", funcName(n))
	case n.AggWithinGroup:
		return fail(pgerr.WrongObjectType, "window function %s cannot have WITHIN GROUP", funcName(n))
	case n.AggDistinct:
		return fail(pgerr.FeatureNotSupported, "DISTINCT is not implemented for window functions")
	case len(n.AggOrder) > 0:
		return fail(pgerr.FeatureNotSupported, "aggregate ORDER BY is not implemented for window functions")
	case n.AggFilter != nil && !aggregate:
		return fail(pgerr.FeatureNotSupported, "FILTER is not implemented for non-aggregate window functions")
	case aggregate && len(n.Args) == 0 && !n.AggStar:
		return fail(pgerr.WrongObjectType, "%s(*) must be used to call a parameterless aggregate function", funcName(n))
	}
	return nil
}

// windowAllowed refuses a window function where rows are not complete yet.
func (p *planner) windowAllowed(s *scope, clause string, loc int32) error {
	switch {
	case s.noAggs == "aggregate":
		return p.errAt(loc, pgerr.GroupingError, "aggregate function calls cannot contain window function calls")
	case s.noWindows == windowFunctionsNested:
		return p.errAt(loc, pgerr.WindowingError, "window function calls cannot be nested")
	case s.noWindows != "":
		clause = s.noWindows
	case s.noAggs != "":
		clause = s.noAggs
	case s.windows != nil && (clause == "SELECT" || clause == "ORDER BY" || clause == "DISTINCT ON"):
		return nil
	}
	return p.errAt(loc, pgerr.WindowingError, "window functions are not allowed in %s", clause)
}

// regroupWindows puts the results of a grouping into the windows above it.
func (p *planner) regroupWindows(s *scope) error {
	if s.windows == nil {
		return nil
	}
	var err error
	one := func(e *Expr) {
		if err == nil && *e != nil {
			*e, err = p.regroup(*e, s, -1)
		}
	}
	for _, spec := range s.windows.specs {
		w := &spec.node
		// An inherited list is shared with the window that it comes from.
		w.Partition, w.Order = slices.Clone(w.Partition), slices.Clone(w.Order)
		for i := range w.Partition {
			one(&w.Partition[i])
		}
		for i := range w.Order {
			one(&w.Order[i].Expr)
		}
		for i := range w.Funcs {
			for k := range w.Funcs[i].Args {
				one(&w.Funcs[i].Args[k])
			}
			one(&w.Funcs[i].Filter)
		}
	}
	return err
}

// addWindows puts the windows of a query above its rows, one over the other.
// Those with the most sort keys come first, so that later ones find their order
// already there as often as possible: PostgreSQL's rule (common_prefix_cmp in
// optimizer/plan/planner.c), which also decides the order of rows in the end.
func (p *planner) addWindows(node Node, s *scope, keys []orderKey) Node {
	var specs []*windowSpec
	for _, spec := range s.windows.specs {
		if len(spec.node.Funcs) > 0 {
			specs = append(specs, spec)
		}
	}
	refs := sortRefs(s, keys)
	slices.SortStableFunc(specs, func(a, b *windowSpec) int { return compareWindows(a, b, refs) })
	var order []SortKey
	for _, spec := range specs {
		w := spec.node
		need := windowSort(&w)
		if !sortedBy(order, need) {
			node, order = &Sort{Child: node, Keys: need}, need
		}
		w.Child = node
		node = &w
	}
	return node
}

// windowSort is the order in which a window wants its rows.
func windowSort(w *Window) []SortKey {
	var keys []SortKey
	add := func(k SortKey) {
		if !slices.ContainsFunc(keys, func(o SortKey) bool { return sameExpr(o.Expr, k.Expr) }) {
			keys = append(keys, k)
		}
	}
	for _, e := range w.Partition {
		add(SortKey{Expr: e})
	}
	for _, k := range w.Order {
		add(k)
	}
	return keys
}

// sortedBy tells that rows in an order are in the wanted order as well.
func sortedBy(order, want []SortKey) bool {
	if len(want) > len(order) {
		return false
	}
	for i, k := range want {
		o := order[i]
		if o.Desc != k.Desc || o.NullsFirst != k.NullsFirst || !sameExpr(o.Expr, k.Expr) {
			return false
		}
	}
	return true
}

// sortRefs numbers the expressions that a query sorts by in the order in which
// PostgreSQL meets them: ORDER BY, GROUP BY, then the windows.
func sortRefs(s *scope, keys []orderKey) map[string]int {
	refs := map[string]int{}
	add := func(e Expr) {
		k := string(fingerprint(nil, e))
		if _, ok := refs[k]; !ok {
			refs[k] = len(refs) + 1
		}
	}
	for _, k := range keys {
		add(k.key.Expr)
	}
	for i, e := range s.group.keys {
		add(NewSlot(e.Type(), s.group.out[i], ""))
	}
	for _, spec := range s.windows.specs {
		for _, k := range spec.node.Order {
			add(k.Expr)
		}
		for _, e := range spec.node.Partition {
			add(e)
		}
	}
	return refs
}

func compareWindows(a, b *windowSpec, refs map[string]int) int {
	x, y := windowSort(&a.node), windowSort(&b.node)
	ref := func(k SortKey) int { return refs[string(fingerprint(nil, k.Expr))] }
	for i := range min(len(x), len(y)) {
		if c := cmp.Compare(ref(y[i]), ref(x[i])); c != 0 {
			return c
		}
		if x[i].Desc != y[i].Desc {
			return int(flag(y[i].Desc)) - int(flag(x[i].Desc))
		}
		if x[i].NullsFirst != y[i].NullsFirst {
			return int(flag(y[i].NullsFirst)) - int(flag(x[i].NullsFirst))
		}
	}
	return len(y) - len(x)
}

// sameList tells that expressions are pairwise equal and have equal values: none
// is volatile.
func sameList(a, b []Expr) bool {
	return slices.EqualFunc(a, b, func(x, y Expr) bool {
		return x == nil && y == nil || x != nil && y != nil && sameExpr(x, y) && !hasVolatile(x)
	})
}

// funcExprs are the operands of a window function.
func funcExprs(f *WindowFunc) []Expr { return append(slices.Clone(f.Args), f.Filter) }
