package builtin

import (
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// pathBool is the value of a predicate.
type pathBool uint8

const (
	pathFalse pathBool = iota
	pathTrue
	pathUnknown
)

func pathTruth(v bool) pathBool {
	if v {
		return pathTrue
	}
	return pathFalse
}

// predicate evaluates a predicate (executeBoolItem). Errors of the document make
// it unknown.
func (x *pathExec) predicate(n *datum.PathNode, it pathItem) (pathBool, error) {
	if x.depth++; x.depth > maxPathNesting {
		return 0, pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
	}
	defer func() { x.depth-- }()
	switch n.Op {
	case datum.PathAnd, datum.PathOr:
		settled := pathTruth(n.Op == datum.PathOr)
		l, err := x.predicate(n.Left, it)
		if err != nil || l == settled {
			return l, err
		}
		r, err := x.predicate(n.Right, it)
		if err != nil || r == settled || l != pathUnknown {
			return r, err
		}
		return pathUnknown, nil
	case datum.PathNot:
		v, err := x.predicate(n.Left, it)
		if v != pathUnknown {
			v = pathTruth(v == pathFalse)
		}
		return v, err
	case datum.PathIsUnknown:
		v, err := x.predicate(n.Left, it)
		return pathTruth(v == pathUnknown), err
	case datum.PathExists:
		return x.exists(n.Left, it)
	case datum.PathStartsWith:
		return x.compareAll(n, it, false, startsWith)
	case datum.PathLikeRegex:
		return x.likeRegex(n, it)
	}
	return x.compareAll(n, it, true, func(a, b pathItem) (pathBool, error) { return x.compare(n.Op, a, b) })
}

// suppress turns errors of the document into false for ok.
func (x *pathExec) suppress(err error) (ok bool, other error) {
	switch {
	case err == nil:
		return true, nil
	case !x.hard && isPathError(err):
		return false, nil
	}
	return false, err
}

// exists: in lax mode the first result decides, in strict mode all are made, so
// that an error among them is seen.
func (x *pathExec) exists(n *datum.PathNode, it pathItem) (pathBool, error) {
	any := false
	note := func(pathItem) error {
		any = true
		return nil
	}
	if x.lax {
		note = nil
	}
	err := x.item(n, it, x.lax, note)
	if err == error(errEnough) {
		any, err = true, nil
	}
	if ok, err := x.suppress(err); err != nil || !ok {
		return pathUnknown, err
	}
	return pathTruth(any), nil
}

// compareAll applies a test to all pairs of values (executePredicate): true as
// soon as one pair passes, in strict mode only if none is unknown.
func (x *pathExec) compareAll(n *datum.PathNode, it pathItem, unwrapRight bool, test func(a, b pathItem) (pathBool, error)) (pathBool, error) {
	left, err := x.collect(n.Left, it, true)
	if ok, err := x.suppress(err); err != nil || !ok {
		return pathUnknown, err
	}
	right := []pathItem{{}}
	if n.Right != nil {
		right, err = x.collect(n.Right, it, unwrapRight)
		if ok, err := x.suppress(err); err != nil || !ok {
			return pathUnknown, err
		}
	}
	found, unknown := false, false
	for _, a := range left {
		for _, b := range right {
			if err := x.c.Budget.Spend(1); err != nil {
				return 0, err
			}
			v, err := test(a, b)
			switch {
			case err != nil:
				return 0, err
			case v == pathUnknown && !x.lax, v == pathTrue && x.lax:
				return v, nil
			}
			found, unknown = found || v == pathTrue, unknown || v == pathUnknown
		}
	}
	switch {
	case found:
		return pathTrue, nil
	case unknown:
		return pathUnknown, nil
	}
	return pathFalse, nil
}

func startsWith(a, b pathItem) (pathBool, error) {
	s, ok1 := a.str()
	prefix, ok2 := b.str()
	if !ok1 || !ok2 {
		return pathUnknown, nil
	}
	return pathTruth(strings.HasPrefix(s, prefix)), nil
}

func (it pathItem) str() (string, bool) {
	if it.typ != nil {
		return "", false
	}
	return datum.JSONBString(it.json)
}

// pathRegexOptions translates XQuery's flags (jspConvertRegexFlags).
func pathRegexOptions(flags string) reOptions {
	has := func(c string) bool { return strings.Contains(flags, c) }
	if has("q") {
		return reOptions{literal: true, fold: has("i")}
	}
	return reOptions{fold: has("i"), dotNoNL: !has("s"), multi: has("m")}
}

func checkPathRegex(pattern, flags string) error {
	_, err := compileRegex(pattern, pathRegexOptions(flags))
	return err
}

func (x *pathExec) likeRegex(n *datum.PathNode, it pathItem) (pathBool, error) {
	opt := pathRegexOptions(n.Flags)
	return x.compareAll(n, it, false, func(a, _ pathItem) (pathBool, error) {
		s, ok := a.str()
		if !ok {
			return pathUnknown, nil
		}
		r, err := regexCharged(x.c, s, n.Str, opt)
		if err != nil {
			return 0, err
		}
		found, err := r.match(x.c, s)
		return pathTruth(found), err
	})
}

// compare compares two scalars (compareItems).
func (x *pathExec) compare(op datum.PathOp, a, b pathItem) (pathBool, error) {
	k1, k2 := a.kind(), b.kind()
	if k1 != k2 {
		if k1 == "null" || k2 == "null" {
			return pathTruth(op == datum.PathNotEqual), nil
		}
		return pathUnknown, nil
	}
	c := 0
	switch k1 {
	case "null":
	case "object", "array":
		return pathUnknown, nil
	case "datetime":
		var ok bool
		var err error
		if c, ok, err = x.compareTimes(a, b); err != nil || !ok {
			return pathUnknown, err
		}
	case "string":
		s, _ := a.str()
		t, _ := b.str()
		c = strings.Compare(s, t)
	default:
		c = datum.JSONB.Compare(a.json, b.json)
	}
	switch op {
	case datum.PathEqual:
		return pathTruth(c == 0), nil
	case datum.PathNotEqual:
		return pathTruth(c != 0), nil
	case datum.PathLess:
		return pathTruth(c < 0), nil
	case datum.PathLessEqual:
		return pathTruth(c <= 0), nil
	case datum.PathGreater:
		return pathTruth(c > 0), nil
	}
	return pathTruth(c >= 0), nil
}
