package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// collectState links the aggregates that keep all their input.
func collectState(f *Func, impl string) func(args []datum.Type) AggState {
	switch impl {
	case "string_agg(text,text)", "string_agg(bytea,bytea)":
		return func([]datum.Type) AggState { return new(stringState) }
	case "array_agg(anynonarray)":
		return func(args []datum.Type) AggState { return &arrayState{elem: args[0].Desc} }
	case "array_agg(anyarray)":
		return func(args []datum.Type) AggState { return &nestedState{elem: elemOf(args[0])} }
	case "json_agg(anyelement)", "jsonb_agg(anyelement)":
		return func(args []datum.Type) AggState {
			return &jsonArrayState{typ: args[0], binary: f.Ret == datum.JSONB}
		}
	case "json_object_agg(any,any)", "jsonb_object_agg(any,any)":
		return func(args []datum.Type) AggState {
			return &jsonObjectState{key: args[0], value: args[1], binary: f.Ret == datum.JSONB}
		}
	}
	return nil
}

// stringState is string_agg: null values are ignored, a null separator is empty.
type stringState struct {
	any bool
	buf []byte
}

func (s *stringState) Add(c *Ctx, a []datum.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	before := len(s.buf)
	if s.any && !a[1].IsNull() {
		s.buf = append(s.buf, a[1].Bytes()...)
	}
	s.any = true
	s.buf = append(s.buf, a[0].Bytes()...)
	return growth(c, before, len(s.buf))
}

// growth bounds what an aggregate collects and charges for it.
func growth(c *Ctx, before, after int) error {
	if after > maxAlloc {
		return pgerr.New(pgerr.ProgramLimitExceeded, "result of the aggregate exceeds %d bytes", maxAlloc)
	}
	return c.Budget.Spend(int64(after-before) / 64)
}

func (s *stringState) Result(*Ctx) (datum.Datum, error) {
	if !s.any {
		return datum.Null, nil
	}
	return datum.Bytes(s.buf), nil
}

// arrayState is array_agg of values.
type arrayState struct {
	elem  *datum.Desc
	any   bool
	vals  []datum.Datum
	arena datum.Arena
}

func (s *arrayState) Add(c *Ctx, a []datum.Datum) error {
	s.any = true
	s.vals = append(s.vals, s.arena.Clone(a[0]))
	if a[0].Inline() || a[0].IsNull() {
		return nil
	}
	return c.Budget.Spend(int64(len(a[0].Bytes())) / 64)
}

func (s *arrayState) Result(*Ctx) (datum.Datum, error) {
	if !s.any {
		return datum.Null, nil
	}
	return datum.MakeArray(s.elem, s.vals), nil
}

// nestedState is array_agg of arrays, which adds a dimension.
type nestedState struct {
	elem  *datum.Desc
	n     int32
	inner []datum.ArrayDim
	vals  []datum.Datum
	arena datum.Arena
}

func (s *nestedState) Add(_ *Ctx, a []datum.Datum) error {
	if a[0].IsNull() {
		return pgerr.New(pgerr.NullValueNotAllowed, "cannot accumulate null arrays")
	}
	dims := datum.ArrayDims(a[0])
	switch {
	case len(dims) == 0:
		return pgerr.New(pgerr.ArraySubscriptError, "cannot accumulate empty arrays")
	case s.n == 0:
		if len(dims) == 6 {
			return pgerr.New(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", 7, 6)
		}
		s.inner = append(s.inner, dims...)
	case len(dims) != len(s.inner):
		return differentDims()
	}
	for i := range dims {
		if dims[i] != s.inner[i] {
			return differentDims()
		}
	}
	s.n++
	for v := range datum.ArrayElems(a[0]) {
		s.vals = append(s.vals, s.arena.Clone(v))
	}
	return nil
}

func differentDims() error {
	return pgerr.New(pgerr.ArraySubscriptError, "cannot accumulate arrays of different dimensionality")
}

func (s *nestedState) Result(*Ctx) (datum.Datum, error) {
	if s.n == 0 {
		return datum.Null, nil
	}
	dims := append([]datum.ArrayDim{{Len: s.n, Lower: 1}}, s.inner...)
	return datum.MakeArrayND(s.elem, dims, s.vals)
}

// jsonArrayState is json_agg and jsonb_agg.
type jsonArrayState struct {
	typ    datum.Type
	binary bool
	buf    []byte
}

func (s *jsonArrayState) Add(c *Ctx, a []datum.Datum) error {
	before := len(s.buf)
	if before == 0 {
		s.buf = append(s.buf, '[')
	} else {
		s.buf = append(s.buf, ", "...)
		if root := s.typ.Root().Desc; !a[0].IsNull() && (root.IsArray() || root == datum.Record || isComposite(root)) {
			s.buf = append(s.buf, "\n "...)
		}
	}
	s.buf = appendJSON(s.buf, s.typ, a[0], c.Format, false)
	return growth(c, before, len(s.buf))
}

func (s *jsonArrayState) Result(c *Ctx) (datum.Datum, error) {
	if s.buf == nil {
		return datum.Null, nil
	}
	return finishJSON(c, append(s.buf, ']'), s.binary)
}

// jsonObjectState is json_object_agg and jsonb_object_agg.
type jsonObjectState struct {
	key, value datum.Type
	binary     bool
	buf        []byte
}

func (s *jsonObjectState) Add(c *Ctx, a []datum.Datum) error {
	if a[0].IsNull() {
		return jsonMisuse("field name must not be null")
	}
	before := len(s.buf)
	if before == 0 {
		s.buf = append(s.buf, "{ "...)
	} else {
		s.buf = append(s.buf, ", "...)
	}
	var err error
	if s.buf, err = appendJSONKey(s.buf, s.key, a[0], c.Format); err != nil {
		return err
	}
	s.buf = append(s.buf, " : "...)
	s.buf = appendJSON(s.buf, s.value, a[1], c.Format, false)
	return growth(c, before, len(s.buf))
}

func (s *jsonObjectState) Result(c *Ctx) (datum.Datum, error) {
	if s.buf == nil {
		return datum.Null, nil
	}
	return finishJSON(c, append(s.buf, " }"...), s.binary)
}
