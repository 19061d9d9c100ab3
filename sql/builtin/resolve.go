package builtin

import (
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Signature is what overload resolution knows of a function, built-in or
// user-defined. Args are the input arguments (IN, INOUT, VARIADIC); if Variadic
// is set the last of them is an array, or "any", that collects the rest.
type Signature struct {
	Args     []*datum.Desc
	Variadic bool
	Defaults int      // trailing arguments that may be left out
	ArgNames []string // nil or one per argument; "" = none
}

// Match says which candidate a call means and how its arguments go there.
type Match struct {
	Index int  // position among the candidates
	Exact bool // the argument types are the declared ones; see [CastFunc]
	// Args are the declared types of the arguments in parameter order, after the
	// variadic one has been expanded; parameters filled by defaults included.
	Args []*datum.Desc
	// Order[i] is the parameter that actual argument i goes to; nil: i itself.
	Order []int
	// Collect is the number of trailing arguments to be collected into an array
	// for the variadic parameter; 0 if there is nothing to collect. For
	// "any" they are passed one by one.
	Collect int
	// Missing are the parameters to be filled by defaults.
	Missing []int
}

// Outcome is the result of overload resolution.
type Outcome uint8

// The outcomes.
const (
	Found     Outcome = iota
	None              // no candidate accepts the arguments
	Ambiguous         // several do and none is better
)

// SelectCandidate chooses among the functions of one name as PostgreSQL does
// (func_get_detail and func_select_candidate in parse_func.c). Candidates come
// in order of their schemas in the search path. Unknown literals and untyped
// parameters have type datum.Unknown. argNames names the last len(argNames)
// arguments (named notation); nil if there are none. For a call with VARIADIC
// before its last argument, clear Variadic in the candidates.
func SelectCandidate(cands []Signature, actual []datum.Type, argNames []string) (Match, Outcome) {
	raw := expandCandidates(cands, len(actual), argNames)
	if len(raw) == 0 {
		return Match{}, None
	}
	for i := range raw {
		if exactMatch(raw[i].Args, raw[i].Order, actual) {
			m, outcome := finish(raw, i)
			m.Exact = outcome == Found
			return m, outcome
		}
	}
	var fit []int
	for i := range raw {
		if canCoerceArgs(raw[i].Args, raw[i].Order, actual) {
			fit = append(fit, i)
		}
	}
	switch len(fit) {
	case 0:
		return Match{}, None
	case 1:
		return finish(raw, fit[0])
	}
	lists := make([][]*datum.Desc, len(fit))
	for i, c := range fit {
		lists[i] = inCallOrder(raw[c].Args, raw[c].Order, len(actual))
	}
	best := selectCandidate(lists, actual)
	if best < 0 {
		return Match{}, Ambiguous
	}
	return finish(raw, fit[best])
}

// finish returns raw[i] unless another expansion has the same argument types
// and neither is to be preferred.
func finish(raw []candidate, i int) (Match, Outcome) {
	if raw[i].tied {
		return Match{}, Ambiguous
	}
	return raw[i].Match, Found
}

// candidate is a possible match; tied marks one that is the same as another.
type candidate struct {
	Match
	tied bool
}

// expandCandidates lists the ways to pass n arguments to the candidates, as
// FuncnameGetCandidates in namespace.c does.
func expandCandidates(cands []Signature, n int, argNames []string) []candidate {
	var out []candidate
	special := false
	for i := range cands {
		m, ok := expand(&cands[i], n, argNames)
		if !ok {
			continue
		}
		m.Index = i
		special = special || m.Collect > 0 || cands[i].Variadic || len(m.Missing) > 0
		c := candidate{Match: m}
		if special || i > 0 {
			if j := sameArguments(out, c.Match, n); j >= 0 {
				out[j] = preferred(out[j], c)
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// preferred chooses between two candidates with the same argument types: the
// one without variadic expansion, or the one earlier in the search path. Two
// that both use defaults tie.
func preferred(old, new candidate) candidate {
	switch {
	case old.Collect > 0 && new.Collect == 0:
		return new
	case old.Collect == 0 && new.Collect > 0:
		return old
	case len(old.Missing) > 0 && len(new.Missing) > 0:
		old.tied = true
		return old
	case len(old.Missing) > 0:
		return new
	}
	return old
}

func sameArguments(list []candidate, m Match, n int) int {
next:
	for i := range list {
		a, b := inCallOrder(list[i].Args, list[i].Order, n), inCallOrder(m.Args, m.Order, n)
		for k := range a {
			if a[k] != b[k] {
				continue next
			}
		}
		return i
	}
	return -1
}

func expand(s *Signature, n int, argNames []string) (Match, bool) {
	if len(argNames) > 0 {
		return expandNamed(s, n, argNames)
	}
	params := len(s.Args)
	switch {
	case s.Variadic && params <= n:
		args := make([]*datum.Desc, n)
		copy(args, s.Args)
		elem := s.Args[params-1]
		switch elem {
		case datum.Any:
		case datum.AnyArray:
			elem = datum.AnyElement
		case datum.AnyCompatibleArray:
			elem = datum.AnyCompatible
		default:
			elem = elementOf(elem)
		}
		for i := params - 1; i < n; i++ {
			args[i] = elem
		}
		return Match{Args: args, Collect: n - params + 1}, true
	case params == n:
		return Match{Args: s.Args}, true
	case params > n && params <= n+s.Defaults:
		m := Match{Args: s.Args}
		for i := n; i < params; i++ {
			m.Missing = append(m.Missing, i)
		}
		return m, true
	}
	return Match{}, false
}

// expandNamed matches a call in named or mixed notation (MatchNamedCall). A
// variadic function cannot be called so, except with VARIADIC.
func expandNamed(s *Signature, n int, argNames []string) (Match, bool) {
	params := len(s.Args)
	if s.Variadic || s.ArgNames == nil || n > params {
		return Match{}, false
	}
	positional := n - len(argNames)
	m := Match{Args: s.Args, Order: make([]int, n)}
	given := make([]bool, params)
	for i := range positional {
		m.Order[i], given[i] = i, true
	}
	for i, name := range argNames {
		p := -1
		for k, have := range s.ArgNames {
			if have == name && have != "" {
				p = k
				break
			}
		}
		if p < 0 || given[p] {
			return Match{}, false
		}
		m.Order[positional+i], given[p] = p, true
	}
	for p, ok := range given {
		if ok {
			continue
		}
		if p < params-s.Defaults {
			return Match{}, false
		}
		m.Missing = append(m.Missing, p)
	}
	return m, true
}

// inCallOrder is the declared types in the order of the actual arguments.
func inCallOrder(args []*datum.Desc, order []int, n int) []*datum.Desc {
	if order == nil {
		return args[:n]
	}
	out := make([]*datum.Desc, n)
	for i, p := range order {
		out[i] = args[p]
	}
	return out
}

func exactMatch(args []*datum.Desc, order []int, actual []datum.Type) bool {
	for i, d := range inCallOrder(args, order, len(actual)) {
		if !sameDesc(d, actual[i].Desc) {
			return false
		}
	}
	return true
}

func canCoerceArgs(args []*datum.Desc, order []int, actual []datum.Type) bool {
	return canCoerceAll(inCallOrder(args, order, len(actual)), actual, Implicit)
}

// selectCandidate is func_select_candidate: it narrows several acceptable
// candidates to one and returns its position, or -1.
func selectCandidate(cands [][]*datum.Desc, actual []datum.Type) int {
	base := make([]*datum.Desc, len(actual))
	unknowns := 0
	for i, t := range actual {
		base[i] = t.Root().Desc
		if base[i] == datum.Unknown {
			unknowns++
		}
	}
	live := make([]int, len(cands))
	for i := range live {
		live[i] = i
	}

	// Most exact matches, then most exact or preferred ones.
	live = keepBest(live, func(c int) (n int) {
		for i, d := range cands[c] {
			if base[i] != datum.Unknown && sameDesc(base[i], d) {
				n++
			}
		}
		return n
	})
	if len(live) == 1 {
		return live[0]
	}
	live = keepBest(live, func(c int) (n int) {
		for i, d := range cands[c] {
			if base[i] != datum.Unknown && (sameDesc(base[i], d) || isPreferred(base[i].Category, d)) {
				n++
			}
		}
		return n
	})
	if len(live) == 1 {
		return live[0]
	}
	if unknowns == 0 {
		return -1
	}
	if live = byUnknownCategory(live, cands, base); len(live) == 1 {
		return live[0]
	}
	if unknowns == len(actual) {
		return -1
	}
	return assumeSameType(live, cands, base)
}

// keepBest keeps the candidates with the highest score.
func keepBest(live []int, score func(c int) int) []int {
	var out []int
	best := -1
	for _, c := range live {
		switch n := score(c); {
		case n > best:
			best, out = n, append(out[:0], c)
		case n == best:
			out = append(out, c)
		}
	}
	return out
}

func isPreferred(category byte, d *datum.Desc) bool {
	return d.Preferred && d.Category == category
}

// byUnknownCategory resolves the unknown arguments by the category that the
// candidates accept there: string if any does, else the common one.
func byUnknownCategory(live []int, cands [][]*datum.Desc, base []*datum.Desc) []int {
	category := make([]byte, len(base))
	hasPreferred := make([]bool, len(base))
	for i, b := range base {
		if b != datum.Unknown {
			continue
		}
		conflict := false
		for _, c := range live {
			d := cands[c][i]
			switch {
			case category[i] == 0:
				category[i], hasPreferred[i] = d.Category, d.Preferred
			case d.Category == category[i]:
				hasPreferred[i] = hasPreferred[i] || d.Preferred
			case d.Category == 'S':
				category[i], hasPreferred[i] = 'S', d.Preferred
			default:
				conflict = true
			}
		}
		if conflict && category[i] != 'S' {
			return live
		}
	}
	var out []int
next:
	for _, c := range live {
		for i, b := range base {
			if b != datum.Unknown {
				continue
			}
			d := cands[c][i]
			if d.Category != category[i] || hasPreferred[i] && !d.Preferred {
				continue next
			}
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return live
	}
	return out
}

// assumeSameType is the last resort: if all known arguments have one type, try
// it for the unknown ones too.
func assumeSameType(live []int, cands [][]*datum.Desc, base []*datum.Desc) int {
	known := datum.Unknown
	for _, b := range base {
		switch {
		case b == datum.Unknown:
		case known == datum.Unknown:
			known = b
		case !sameDesc(known, b):
			return -1
		}
	}
	assumed := make([]datum.Type, len(base))
	for i := range assumed {
		assumed[i] = datum.T(known)
	}
	found := -1
	for _, c := range live {
		if !canCoerceAll(cands[c], assumed, Implicit) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = c
	}
	return found
}

// ResolveOperator chooses the operator for operand types as oper() and
// left_oper() in parse_oper.c do. A prefix operator has the zero left type. The
// declared operand types are Left and Right of the result; polymorphic ones are
// resolved by [ResolvePolymorphic].
func ResolveOperator(name string, left, right datum.Type) (*Operator, error) {
	if name == "!=" {
		name = "<>"
	}
	ops := LookupOperators(name)
	if left.Desc == nil {
		return resolvePrefix(name, ops, right)
	}
	if op := exactOperator(ops, left, right); op != nil {
		return op, nil
	}
	var cands [][]*datum.Desc
	var binary []*Operator
	for _, op := range ops {
		if op.Left != nil {
			cands, binary = append(cands, []*datum.Desc{op.Left, op.Right}), append(binary, op)
		}
	}
	i, outcome := selectOperator(cands, []datum.Type{left, right})
	if outcome != Found {
		return nil, operatorError(name, left, right, outcome)
	}
	return binary[i], nil
}

func resolvePrefix(name string, ops []*Operator, right datum.Type) (*Operator, error) {
	var cands [][]*datum.Desc
	var prefix []*Operator
	for _, op := range ops {
		if op.Left != nil {
			continue
		}
		if sameDesc(op.Right, right.Desc) {
			return op, nil
		}
		cands, prefix = append(cands, []*datum.Desc{op.Right}), append(prefix, op)
	}
	i, outcome := selectOperator(cands, []datum.Type{right})
	if outcome != Found {
		return nil, operatorError(name, datum.Type{}, right, outcome)
	}
	return prefix[i], nil
}

// exactOperator is binary_oper_exact: an unknown operand is first taken to have
// the other's type, then that type's base type.
func exactOperator(ops []*Operator, left, right datum.Type) *Operator {
	l, r := left.Desc, right.Desc
	unknown := false
	if l == datum.Unknown {
		l, unknown = r, true
	} else if r == datum.Unknown {
		r, unknown = l, true
	}
	for _, op := range ops {
		if sameDesc(op.Left, l) && sameDesc(op.Right, r) {
			return op
		}
	}
	if unknown {
		if base := datum.T(l).Root().Desc; base != l {
			return exactOperator(ops, datum.T(base), datum.T(base))
		}
	}
	return nil
}

func selectOperator(cands [][]*datum.Desc, actual []datum.Type) (int, Outcome) {
	var fit []int
	for i := range cands {
		if canCoerceAll(cands[i], actual, Implicit) {
			fit = append(fit, i)
		}
	}
	switch len(fit) {
	case 0:
		return 0, None
	case 1:
		return fit[0], Found
	}
	lists := make([][]*datum.Desc, len(fit))
	for i, c := range fit {
		lists[i] = cands[c]
	}
	best := selectCandidate(lists, actual)
	if best < 0 {
		return 0, Ambiguous
	}
	return fit[best], Found
}

func operatorError(name string, left, right datum.Type, outcome Outcome) error {
	sig := name + " " + typeName(right)
	if left.Desc != nil {
		sig = typeName(left) + " " + sig
	}
	if outcome == Ambiguous {
		return pgerr.New(pgerr.AmbiguousFunction, "operator is not unique: %s", sig).
			WithHint("Could not choose a best candidate operator. You might need to add explicit type casts.")
	}
	e := pgerr.New(pgerr.UndefinedFunction, "operator does not exist: %s", sig)
	if left.Desc == nil {
		return e.WithHint("No operator matches the given name and argument type. You might need to add an explicit type cast.")
	}
	return e.WithHint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

// FuncError is PostgreSQL's report that a call names no function, or several.
// name is the name as written (qualified if it was).
func FuncError(name string, actual []datum.Type, argNames []string, outcome Outcome) error {
	var b strings.Builder
	b.WriteString(name + "(")
	for i, t := range actual {
		if i > 0 {
			b.WriteString(", ")
		}
		if k := i - (len(actual) - len(argNames)); k >= 0 {
			b.WriteString(argNames[k] + " => ")
		}
		b.WriteString(typeName(t))
	}
	b.WriteString(")")
	if outcome == Ambiguous {
		return pgerr.New(pgerr.AmbiguousFunction, "function %s is not unique", b.String()).
			WithHint("Could not choose a best candidate function. You might need to add explicit type casts.")
	}
	return pgerr.New(pgerr.UndefinedFunction, "function %s does not exist", b.String()).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

// ResolveFunc chooses among the functions of pg_catalog alone; the planner,
// which also knows user-defined ones, calls [SelectCandidate] itself. The caller
// tries [CastFunc] first if the match is not exact.
func ResolveFunc(name string, actual []datum.Type, argNames []string) (*Func, Match, error) {
	funcs := LookupFuncs(name)
	cands := make([]Signature, len(funcs))
	for i, f := range funcs {
		cands[i] = f.Signature()
	}
	m, outcome := SelectCandidate(cands, actual, argNames)
	if outcome != Found {
		return nil, Match{}, FuncError(name, actual, argNames, outcome)
	}
	return funcs[m.Index], m, nil
}

// CastFunc tells whether a call name(x) without an exact match is a cast in the
// notation of functions, such as int4('1'): a type of that name exists, and x,
// of type src, is an unknown literal or converts to it without a function. It
// goes before inexact matches ([Match.Exact] is false), as in func_get_detail.
func CastFunc(name string, src datum.Type) (*datum.Desc, bool) {
	d, ok := TypeByName(name)
	if !ok || d.Kind == datum.Pseudo || d.IsArray() {
		return nil, false
	}
	if src.Desc == datum.Unknown {
		return d, true
	}
	c, ok := FindCast(src.Desc, d, Explicit)
	if !ok {
		return nil, false
	}
	switch c.Method {
	case ByBinary:
		return d, true
	case ByIO:
		record := src.Desc == datum.Record || isComposite(src.Desc)
		return d, !record || d.Category != 'S'
	case ByFunc: // but what is binary to PostgreSQL
		return d, c.Func == int4ToOID || c.Func == oidToInt4
	}
	return nil, false
}

func funcSignature(name string, args []*datum.Desc) string {
	var b strings.Builder
	b.WriteString(name + "(")
	for i, d := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(typeName(datum.T(d)))
	}
	b.WriteString(")")
	return b.String()
}
