package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// typeName is format_type_be: a type as messages name it, without modifier.
// format_type with a modifier of -1 says bpchar for what it calls character
// without one.
func typeName(t datum.Type) string {
	switch t.Desc {
	case datum.BpChar:
		return "character"
	case datum.BpChar.Array:
		return "character[]"
	}
	return datum.FormatType(datum.Type{Desc: t.Desc, Mod: -1})
}

// sameDesc compares types by OID; nil equals nothing.
func sameDesc(a, b *datum.Desc) bool {
	return a != nil && b != nil && (a == b || a.OID == b.OID)
}

// baseOf follows domains down to the underlying type.
func baseOf(d *datum.Desc) *datum.Desc { return datum.T(d).Root().Desc }

// elementOf is get_element_type: nil for everything but true arrays, among
// which PostgreSQL counts int2vector and oidvector.
func elementOf(d *datum.Desc) *datum.Desc {
	if d == nil || d.Category != 'A' && !d.IsArray() {
		return nil
	}
	return d.Elem
}

func isComposite(d *datum.Desc) bool { return d.Kind == datum.Composite }

// allows reports whether a cast with context c may be used where ctx is asked for.
func (c CastContext) allows(ctx CastContext) bool { return castRank(c) <= castRank(ctx) }

func castRank(c CastContext) int {
	switch c {
	case Implicit:
		return 0
	case Assignment:
		return 1
	}
	return 2
}

// FindCast finds the way from one type to another in a context, as
// find_coercion_pathway in parse_coerce.c does: domains count as their base
// types; then pg_cast; then element by element for arrays; then through the
// text forms (to strings by assignment, from strings explicitly). A cast
// between the same types is binary and implicit. Casts from unknown and to
// pseudo-types are not its matter; see [CanCoerce].
func FindCast(src, dst *datum.Desc, ctx CastContext) (Cast, bool) {
	s, d := baseOf(src), baseOf(dst)
	if sameDesc(s, d) {
		return Cast{Source: src, Target: dst, Context: Implicit, Method: ByBinary}, true
	}
	r := reg()
	if i, ok := r.castOf[castKey{s.OID, d.OID}]; ok {
		c := r.casts[i]
		if f := oidCast(s, d); f != nil {
			c.Method, c.Func = ByFunc, f
		}
		return c, c.Context.allows(ctx)
	}
	if c, ok := arrayCast(s, d, ctx); ok {
		return c, true
	}
	if c, ok := multirangeCast(s, d); ok {
		return c, c.Context.allows(ctx)
	}
	if d.Category == 'S' && Assignment.allows(ctx) {
		return Cast{Source: src, Target: dst, Context: Assignment, Method: ByIO}, true
	}
	if s.Category == 'S' && Explicit.allows(ctx) {
		return Cast{Source: src, Target: dst, Context: Explicit, Method: ByIO}, true
	}
	return Cast{}, false
}

// An int4 and an oid are the same four bytes to PostgreSQL, so that a negative
// number becomes a large OID; here they are a signed and an unsigned number.
var (
	int4ToOID = &Func{Name: "oid", Args: []*datum.Desc{datum.Int4}, Ret: datum.OIDType, Kind: Scalar, Strict: true,
		Volatility: Immutable, built: true, Eval: func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
			return datum.Int(int64(uint32(a[0].Int()))), nil
		}}
	oidToInt4 = &Func{Name: "int4", Args: []*datum.Desc{datum.OIDType}, Ret: datum.Int4, Kind: Scalar, Strict: true,
		Volatility: Immutable, built: true, Eval: func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
			return datum.Int(int64(int32(a[0].Int()))), nil
		}}
)

// oidCast is the function behind a cast between integers of at most four bytes
// and the OID types, nil for all others.
func oidCast(s, d *datum.Desc) *Func {
	switch {
	case (s == datum.Int4 || s == datum.Int2) && isOIDLike(d):
		return int4ToOID
	case isOIDLike(s) && d == datum.Int4:
		return oidToInt4
	}
	return nil
}

// isOIDLike: oid and the reg* types.
func isOIDLike(d *datum.Desc) bool {
	return d == datum.OIDType || d.Category == 'N' && len(d.Name) > 3 && d.Name[:3] == "reg"
}

// arrayCast derives a cast between array types from that of their elements.
// PostgreSQL keeps int2vector and oidvector out of it as targets, but lets an
// oidvector be read as oid[].
func arrayCast(s, d *datum.Desc, ctx CastContext) (Cast, bool) {
	if d == datum.Int2Vector || d == datum.OIDVector {
		return Cast{}, false
	}
	from, to := elementOf(s), elementOf(d)
	if from == nil || to == nil {
		return Cast{}, false
	}
	elem, ok := FindCast(from, to, ctx)
	if !ok {
		return Cast{}, false
	}
	method := ByElement
	if elem.Method == ByBinary {
		method = ByBinary
	}
	return Cast{Source: s, Target: d, Context: elem.Context, Method: method, Elem: &elem}, true
}

// CanCoerce reports whether a value of type src may be used as dst in a context
// (can_coerce_type for one argument): everything may become "any", unknown
// literals everything.
func CanCoerce(src, dst *datum.Desc, ctx CastContext) bool {
	switch {
	case sameDesc(src, dst), dst == datum.Any, src == datum.Unknown:
		return true
	case isPolymorphic(dst):
		return polymorphicConsistent([]*datum.Desc{dst}, []datum.Type{datum.T(src)})
	case src.OID == datum.RecordOID && isComposite(dst), isComposite(src) && dst.OID == datum.RecordOID:
		return true
	case dst == datum.Record.Array && src.IsArray() && isComposite(src.Elem):
		return true
	case src.Kind == datum.Pseudo && !isComposite(dst) && src != datum.Record && src.Category != 'A':
		return false
	}
	_, ok := FindCast(src, dst, ctx)
	return ok
}

// canCoerceAll is can_coerce_type: every argument by itself, and polymorphic
// ones consistent with each other.
func canCoerceAll(declared []*datum.Desc, actual []datum.Type, ctx CastContext) bool {
	polymorphic := false
	for i, d := range declared {
		if isPolymorphic(d) {
			polymorphic = true
			continue
		}
		if !CanCoerce(actual[i].Desc, d, ctx) {
			return false
		}
	}
	return !polymorphic || polymorphicConsistent(declared, actual)
}

// CommonType chooses the type that alternatives (CASE branches, UNION columns,
// VALUES, ARRAY elements, COALESCE arguments ...) are converted to:
// select_common_type in parse_coerce.c. All unknown gives text. construct names
// it in the error 42804: "CASE types integer and text cannot be matched". The
// modifier is kept if all have the same.
func CommonType(types []datum.Type, construct string) (datum.Type, error) {
	common, clash := commonType(types)
	if clash.Desc != nil {
		return datum.Type{}, pgerr.New(pgerr.DatatypeMismatch, "%s types %s and %s cannot be matched",
			construct, typeName(common), typeName(clash))
	}
	for _, t := range types {
		if !CanCoerce(t.Desc, common.Desc, Implicit) {
			return datum.Type{}, pgerr.New(pgerr.CannotCoerce, "%s could not convert type %s to %s",
				construct, typeName(t), typeName(common))
		}
	}
	return common, nil
}

// commonType is the choice alone; clash is set if a type has another category
// than the one chosen so far, which is then returned.
func commonType(types []datum.Type) (common, clash datum.Type) {
	first := types[0]
	if first.Desc != datum.Unknown && allSame(types) {
		for _, t := range types {
			if t.Mod != first.Mod {
				return datum.T(first.Desc), clash
			}
		}
		return first, clash
	}
	p := baseOf(first.Desc)
	for _, t := range types[1:] {
		n := baseOf(t.Desc)
		switch {
		case n == datum.Unknown || sameDesc(n, p):
		case p == datum.Unknown:
			p = n
		case n.Category != p.Category:
			return datum.T(p), datum.T(n)
		case !p.Preferred && CanCoerce(p, n, Implicit) && !CanCoerce(n, p, Implicit):
			p = n
		}
	}
	if p == datum.Unknown {
		p = datum.Text
	}
	mod := first.Mod
	for _, t := range types {
		if !sameDesc(t.Desc, p) || t.Mod != mod {
			mod = -1
		}
	}
	return datum.Type{Desc: p, Mod: mod}, clash
}

func allSame(types []datum.Type) bool {
	for _, t := range types {
		if !t.Same(types[0]) {
			return false
		}
	}
	return true
}

// CoerceError is PostgreSQL's report that no cast exists.
func CoerceError(src, dst datum.Type) error {
	return pgerr.New(pgerr.CannotCoerce, "cannot cast type %s to %s", typeName(src), typeName(dst))
}

// Conversion turns one value that is not null into another type.
type Conversion func(c *Ctx, d datum.Datum) (datum.Datum, error)

// BindCast makes the conversion from src to dst, type modifier included: what
// CAST(x AS dst) does if ctx is Explicit, what an assignment does if it is
// Assignment. A nil Conversion means that values stay as they are. Constraints
// of domains are the caller's to check. Errors: 42846 if there is no such cast.
func BindCast(src, dst datum.Type, ctx CastContext) (Conversion, error) {
	root := dst.Root()
	if root.Desc == datum.Unknown {
		return nil, CoerceError(src, dst)
	}
	if src.Desc == datum.Unknown {
		return withModifier(parseUnknown(root), src, root, ctx), nil
	}
	cast, ok := FindCast(src.Desc, root.Desc, ctx)
	if !ok {
		return nil, CoerceError(src, dst)
	}
	conv, err := bindMethod(&cast, src.Root(), root, ctx)
	if err != nil {
		return nil, err
	}
	if cast.Method == ByElement {
		return conv, nil // the modifier belongs to the elements
	}
	return withModifier(conv, src, root, ctx), nil
}

func bindMethod(cast *Cast, src, dst datum.Type, ctx CastContext) (Conversion, error) {
	switch cast.Method {
	case ByFunc:
		eval, err := cast.Func.BindEval([]datum.Type{src}, dst)
		if err != nil {
			return nil, err
		}
		return func(c *Ctx, d datum.Datum) (datum.Datum, error) {
			args := [1]datum.Datum{d}
			return eval(c, args[:])
		}, nil
	case ByIO:
		return convertIO(src.Desc, dst.Desc), nil
	case ByElement:
		return convertElements(src, dst, ctx)
	}
	return nil, nil
}

// parseUnknown reads a literal. Only an interval's modifier, which can tell what
// its numbers mean, counts in reading; the others are applied afterwards.
func parseUnknown(dst datum.Type) Conversion {
	mod := int32(-1)
	if dst.Desc == datum.Interval {
		mod = dst.Mod
	}
	return func(c *Ctx, d datum.Datum) (datum.Datum, error) {
		return dst.Parse(d.Str(), mod, c.Format)
	}
}

func convertIO(src, dst *datum.Desc) Conversion {
	if src.Category == 'S' {
		return func(c *Ctx, d datum.Datum) (datum.Datum, error) {
			return dst.Parse(d.Str(), -1, c.Format)
		}
	}
	if dst == datum.Text || dst == datum.VarChar || dst == datum.BpChar {
		return func(c *Ctx, d datum.Datum) (datum.Datum, error) {
			return datum.Bytes(src.Append(nil, d, c.Format)), nil
		}
	}
	return func(c *Ctx, d datum.Datum) (datum.Datum, error) {
		return dst.Parse(string(src.Append(nil, d, c.Format)), -1, c.Format)
	}
}

func convertElements(src, dst datum.Type, ctx CastContext) (Conversion, error) {
	to := datum.Type{Desc: dst.Elem, Mod: dst.Mod}
	conv, err := BindCast(datum.T(src.Elem), to, ctx)
	if err != nil || conv == nil {
		return nil, err
	}
	return func(c *Ctx, d datum.Datum) (datum.Datum, error) {
		vals := datum.ArrayValues(d)
		out := make([]datum.Datum, len(vals))
		for i, v := range vals {
			if v.IsNull() {
				out[i] = v
				continue
			}
			var err error
			if out[i], err = conv(c, v); err != nil {
				return datum.Null, err
			}
		}
		return datum.MakeArrayND(dst.Elem, datum.ArrayDims(d), out)
	}, nil
}

// withModifier appends the application of dst's modifier, element by element
// for arrays, unless src has the same one.
func withModifier(conv Conversion, src, dst datum.Type, ctx CastContext) Conversion {
	if dst.Mod < 0 || src.Same(dst) && src.Mod == dst.Mod {
		return conv
	}
	explicit := ctx == Explicit
	apply := dst.Coerce
	if dst.IsArray() {
		elem := dst.Elem
		if elem.Coerce == nil {
			return conv
		}
		apply = func(d datum.Datum, mod int32, explicit bool) (datum.Datum, error) {
			return coerceElements(elem, d, mod, explicit)
		}
	}
	if apply == nil {
		return conv
	}
	return func(c *Ctx, d datum.Datum) (datum.Datum, error) {
		if conv != nil {
			var err error
			if d, err = conv(c, d); err != nil {
				return datum.Null, err
			}
		}
		return apply(d, dst.Mod, explicit)
	}
}

func coerceElements(elem *datum.Desc, d datum.Datum, mod int32, explicit bool) (datum.Datum, error) {
	vals := datum.ArrayValues(d)
	out := make([]datum.Datum, len(vals))
	for i, v := range vals {
		if v.IsNull() {
			out[i] = v
			continue
		}
		var err error
		if out[i], err = elem.Coerce(v, mod, explicit); err != nil {
			return datum.Null, err
		}
	}
	return datum.MakeArrayND(elem, datum.ArrayDims(d), out)
}
