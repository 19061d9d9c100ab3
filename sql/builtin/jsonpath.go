package builtin

import (
	"slices"
	"sync/atomic"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func init() { datum.CheckPathRegex = checkPathRegex }

// pathCache remembers the last path that a call site took apart: nearly always
// it is the same constant for every row.
type pathCache struct{ last atomic.Pointer[cachedPath] }

type cachedPath struct {
	text string
	path *datum.JSONPath
}

func (c *pathCache) parse(d datum.Datum) (*datum.JSONPath, error) {
	if p := c.last.Load(); p != nil && p.text == d.Str() {
		return p.path, nil
	}
	text := datum.Clone(d).Str()
	path, err := datum.ParseJSONPath(text)
	if err != nil {
		return nil, err
	}
	c.last.Store(&cachedPath{text, path})
	return path, nil
}

// pathCall is one call of a jsonb_path_* function: document, path, and with four
// arguments variables and silent.
type pathCall struct {
	cache pathCache
	zoned bool // dates and timestamps compare with those with time zone
}

// run executes the path. With first only the
// number of results counts, and one is enough. The error
// says what a caller that is not silent gets; failed that there was one.
func (p *pathCall) run(c *Ctx, a []datum.Datum, first bool) (found []pathItem, failed bool, err error) {
	path, err := p.cache.parse(a[1])
	if err != nil {
		return nil, false, err
	}
	x := &pathExec{c: c, lax: !path.Strict, ignore: !path.Strict, zoned: p.zoned, root: pathItem{json: a[0]}, last: -1}
	silent := true
	if len(a) > 2 {
		x.hasVars, x.vars, silent = true, a[2], a[3].Bool()
		if !isObject(x.vars) {
			return nil, false, pgerr.New(pgerr.InvalidParameterValue, "\"vars\" argument is not an object").
				WithDetail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.")
		}
	}
	x.current = x.root
	collect := func(it pathItem) error {
		found = append(found, it)
		return nil
	}
	if first && x.lax {
		collect = nil
	}
	err = x.item(path.Root, x.root, x.lax, collect)
	switch {
	case err == error(errEnough):
		return []pathItem{{}}, false, nil
	case err == nil:
		return found, false, nil
	case silent && !x.hard && isPathError(err):
		return found, true, nil
	}
	return found, true, err
}

// isPathError tells the errors that silent suppresses: those that depend on the
// document. Limits and the like are raised in any case.
func isPathError(err error) bool {
	e, ok := pgerr.From(err)
	return ok && slices.Contains([]pgerr.Code{pgerr.InvalidJSONDatetime, pgerr.InvalidJSONSubscript, pgerr.NonNumericJSONItem,
		pgerr.SingletonJSONItemRequired, pgerr.JSONArrayNotFound, pgerr.JSONMemberNotFound, pgerr.JSONNumberNotFound, pgerr.JSONObjectNotFound,
		pgerr.DivisionByZero, pgerr.NumericValueOutOfRange, pgerr.InvalidDatetimeFormat, pgerr.DatetimeFieldOverflow}, e.Code)
}

func bindPathExists(zoned bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func([]datum.Type, datum.Type) (Eval, error) {
		p := &pathCall{zoned: zoned}
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			found, failed, err := p.run(c, a, true)
			if err != nil || failed {
				return datum.Null, err
			}
			return datum.Bool(len(found) > 0), nil
		}, nil
	}
}

func bindPathMatch(zoned bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func([]datum.Type, datum.Type) (Eval, error) {
		p := &pathCall{zoned: zoned}
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			found, _, err := p.run(c, a, false)
			if err != nil {
				return datum.Null, err
			}
			if len(found) == 1 && found[0].typ == nil {
				if v, ok := datum.JSONBBool(found[0].json); ok {
					return datum.Bool(v), nil
				}
				if datum.JSONBIsNull(found[0].json) {
					return datum.Null, nil
				}
			}
			if len(a) > 2 && !a[3].Bool() {
				return datum.Null, pgerr.New(pgerr.SingletonJSONItemRequired, "single boolean result is expected")
			}
			return datum.Null, nil
		}, nil
	}
}

func bindPathArray(zoned bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func([]datum.Type, datum.Type) (Eval, error) {
		p := &pathCall{zoned: zoned}
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			found, _, err := p.run(c, a, false)
			if err != nil {
				return datum.Null, err
			}
			var b datum.JSONBBuilder
			b.BeginArray()
			for _, it := range found {
				b.Value(it.value())
			}
			b.EndArray()
			return b.Done(), nil
		}, nil
	}
}

func bindPathFirst(zoned bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func([]datum.Type, datum.Type) (Eval, error) {
		p := &pathCall{zoned: zoned}
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			found, _, err := p.run(c, a, false)
			if err != nil || len(found) == 0 {
				return datum.Null, err
			}
			return found[0].value(), nil
		}, nil
	}
}

func bindPathQuery(zoned bool) func([]datum.Type) (SetEval, []Column, error) {
	return func([]datum.Type) (SetEval, []Column, error) {
		p := &pathCall{zoned: zoned}
		return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
			for _, d := range a {
				if d.IsNull() {
					return nil
				}
			}
			found, _, err := p.run(c, a, false)
			if err != nil {
				return err
			}
			out := emitter(c, emit)
			for _, it := range found {
				if err := out(it.value()); err != nil {
					return err
				}
			}
			return nil
		}, []Column{{Name: "jsonb_path_query", Type: datum.T(datum.JSONB)}}, nil
	}
}

var jsonPathBinds = bindMap{
	"jsonb_path_exists": bindPathExists(false), "jsonb_path_exists_tz": bindPathExists(true), "jsonb_path_exists_opr": bindPathExists(false),
	"jsonb_path_match": bindPathMatch(false), "jsonb_path_match_tz": bindPathMatch(true), "jsonb_path_match_opr": bindPathMatch(false),
	"jsonb_path_query_array": bindPathArray(false), "jsonb_path_query_array_tz": bindPathArray(true),
	"jsonb_path_query_first": bindPathFirst(false), "jsonb_path_query_first_tz": bindPathFirst(true),
	"jsonpath_send": bindSend,
}

var jsonPathBindSets = bindSetMap{"jsonb_path_query": bindPathQuery(false), "jsonb_path_query_tz": bindPathQuery(true)}
