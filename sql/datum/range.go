package datum

import "github.com/tallystick/tallystick/sql/pgerr"

// A range value is one byte of flags (those of PostgreSQL's rangetypes.h) and
// then the finite bounds, lower first, as rows store values of the subtype. An
// empty range has the flag for it and nothing else, an infinite bound is never
// inclusive, and a range over a discrete subtype is in its canonical form, so
// that equal ranges have equal bytes as far as values of the subtype have.
const (
	rangeEmpty    = 0x01
	rangeLowerInc = 0x02
	rangeUpperInc = 0x04
	rangeLowerInf = 0x08
	rangeUpperInf = 0x10
)

// Bound is one end of a range. Val means nothing if Infinite is set.
type Bound struct {
	Val       Datum
	Infinite  bool
	Inclusive bool
	Lower     bool
}

// IsRange reports whether t is a range type, IsMultirange whether it is a type
// of several ranges.
func (t *Desc) IsRange() bool { return t != nil && t.Kind == Range }

// IsMultirange reports whether t is a multirange type.
func (t *Desc) IsMultirange() bool { return t != nil && t.Kind == Multirange }

// EmptyRange is the empty range of every range type.
func EmptyRange() Datum { return Bytes([]byte{rangeEmpty}) }

// MakeRange makes a range of type t from its bounds, empty if no value can lie
// between them, in canonical form (make_range in rangetypes.c). 22000 if the
// lower bound is above the upper one; 22003 and 22008 if the canonical form does
// not fit the subtype.
func MakeRange(t *Desc, lower, upper Bound) (Datum, error) {
	lower.Lower, upper.Lower = true, false
	lower.Inclusive = lower.Inclusive && !lower.Infinite
	upper.Inclusive = upper.Inclusive && !upper.Infinite
	empty, err := emptyBetween(t, lower, upper)
	if err == nil && !empty && t.canonical != nil {
		if err = t.canonical(&lower, &upper); err == nil {
			empty, err = emptyBetween(t, lower, upper)
		}
	}
	switch {
	case err != nil:
		return Null, err
	case empty:
		return EmptyRange(), nil
	}
	return encodeRange(t, lower, upper), nil
}

func emptyBetween(t *Desc, lower, upper Bound) (bool, error) {
	switch c := CompareBoundValues(t, lower, upper); {
	case c > 0:
		return false, pgerr.New(pgerr.DataException, "range lower bound must be less than or equal to range upper bound")
	case c == 0:
		return !lower.Inclusive || !upper.Inclusive, nil
	}
	return false, nil
}

func encodeRange(t *Desc, lower, upper Bound) Datum {
	b := make([]byte, 1, 20)
	flag := func(set bool, f byte) {
		if set {
			b[0] |= f
		}
	}
	flag(lower.Infinite, rangeLowerInf)
	flag(upper.Infinite, rangeUpperInf)
	flag(lower.Inclusive, rangeLowerInc)
	flag(upper.Inclusive, rangeUpperInc)
	if !lower.Infinite {
		b = appendValue(b, t.Sub.store, lower.Val)
	}
	if !upper.Infinite {
		b = appendValue(b, t.Sub.store, upper.Val)
	}
	return Bytes(b)
}

// RangeBounds takes a range of type t apart; the values refer to d's bytes.
// Corrupt bytes read as the empty range.
func RangeBounds(t *Desc, d Datum) (lower, upper Bound, empty bool) {
	lower, upper, empty, _ = readRange(t, d.Bytes())
	return lower, upper, empty
}

// readRange reads one range; n is its length.
func readRange(t *Desc, b []byte) (lower, upper Bound, empty bool, n int) {
	lower, upper = Bound{Lower: true}, Bound{}
	if len(b) == 0 || b[0]&rangeEmpty != 0 {
		return lower, upper, true, min(len(b), 1)
	}
	flags := b[0]
	n = 1
	ok := true
	read := func(x *Bound, infinite, inclusive bool) {
		if x.Infinite = infinite; infinite || !ok {
			return
		}
		x.Inclusive = inclusive
		v, k := readValue(b[n:], t.Sub.store)
		ok = k > 0
		x.Val, n = v, n+k
	}
	read(&lower, flags&rangeLowerInf != 0, flags&rangeLowerInc != 0)
	read(&upper, flags&rangeUpperInf != 0, flags&rangeUpperInc != 0)
	return lower, upper, !ok, n
}

// RangeIsEmpty reports whether a range is empty.
func RangeIsEmpty(d Datum) bool { return d.n == 0 || d.Bytes()[0]&rangeEmpty != 0 }

// CompareBoundValues orders two bounds by their values alone
// (range_cmp_bound_values).
func CompareBoundValues(t *Desc, a, b Bound) int {
	end := func(x Bound) int {
		switch {
		case !x.Infinite:
			return 0
		case x.Lower:
			return -1
		}
		return 1
	}
	if a.Infinite || b.Infinite {
		return end(a) - end(b)
	}
	return t.Sub.Compare(a.Val, b.Val)
}

// CompareBounds orders two bounds by the values that they let in
// (range_cmp_bounds): an exclusive lower bound comes after the inclusive one of
// the same value, an exclusive upper bound before it.
func CompareBounds(t *Desc, a, b Bound) int {
	if a.Infinite || b.Infinite {
		return CompareBoundValues(t, a, b)
	}
	if c := t.Sub.Compare(a.Val, b.Val); c != 0 {
		return c
	}
	return boundSide(a) - boundSide(b)
}

// boundSide is how far a bound lies from its value: just below, on, just above.
func boundSide(b Bound) int {
	switch {
	case b.Inclusive:
		return 0
	case b.Lower:
		return 1
	}
	return -1
}

// BoundsAdjacent reports whether nothing lies between an upper bound and a lower
// one, and they do not overlap (bounds_adjacent).
func BoundsAdjacent(t *Desc, upper, lower Bound) bool {
	switch c := CompareBoundValues(t, upper, lower); {
	case c == 0:
		return upper.Inclusive != lower.Inclusive
	case c > 0 || t.canonical == nil:
		return false // a continuous subtype has values between any two
	}
	from := Bound{Val: upper.Val, Inclusive: !upper.Inclusive}
	to := Bound{Val: lower.Val, Inclusive: !lower.Inclusive}
	between, err := MakeRange(t, from, to)
	return err == nil && RangeIsEmpty(between)
}

func compareRanges(t *Desc) func(a, b Datum) int {
	return func(a, b Datum) int {
		l1, u1, e1 := RangeBounds(t, a)
		l2, u2, e2 := RangeBounds(t, b)
		if e1 || e2 {
			return int(boolBit(e2)) - int(boolBit(e1))
		}
		if c := CompareBounds(t, l1, l2); c != 0 {
			return c
		}
		return CompareBounds(t, u1, u2)
	}
}

// Marks in the key of a range; they and the values between them sort as
// compareRanges does.
const (
	keyRangeEmpty = 0x00
	keyRange      = 0x01

	keyBoundLow   = 0x00 // infinite and lower
	keyBoundValue = 0x01
	keyBoundHigh  = 0x02 // infinite and upper
)

func keyOfRange(t *Desc) func([]byte, Datum) []byte {
	return func(dst []byte, d Datum) []byte {
		lower, upper, empty := RangeBounds(t, d)
		if empty {
			return append(dst, keyRangeEmpty)
		}
		return keyBound(keyBound(append(dst, keyRange), t, lower), t, upper)
	}
}

func keyBound(dst []byte, t *Desc, b Bound) []byte {
	if b.Infinite {
		if b.Lower {
			return append(dst, keyBoundLow)
		}
		return append(dst, keyBoundHigh)
	}
	return append(t.Sub.AppendKey(append(dst, keyBoundValue), b.Val), byte(1+boundSide(b)))
}

func skipRangeKey(t *Desc) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) {
		if len(b) == 0 || b[0] > keyRange {
			return nil, errBadKey()
		}
		mark := b[0]
		b = b[1:]
		if mark == keyRangeEmpty {
			return b, nil
		}
		for range 2 {
			if len(b) == 0 || b[0] > keyBoundHigh {
				return nil, errBadKey()
			}
			mark, b = b[0], b[1:]
			if mark != keyBoundValue {
				continue
			}
			var err error
			if b, err = t.Sub.SkipKey(b); err != nil {
				return nil, err
			}
			if len(b) == 0 || b[0] > 2 {
				return nil, errBadKey()
			}
			b = b[1:]
		}
		return b, nil
	}
}

func hashOfRange(t *Desc) func(uint64, Datum) uint64 {
	return func(h uint64, d Datum) uint64 {
		lower, upper, empty := RangeBounds(t, d)
		if empty {
			return HashInt(h, rangeEmpty)
		}
		for _, b := range [2]Bound{lower, upper} {
			if b.Infinite {
				h = HashInt(h, rangeLowerInf)
				continue
			}
			h = t.Sub.Hash(HashInt(h, boolBit(b.Inclusive)), b.Val)
		}
		return h
	}
}

// The built-in range types; their multirange types are Int4Range.Multi and so on.
var (
	Int4Range = rangeDesc(3904, "int4range", Int4, 4451, "int4multirange")
	NumRange  = rangeDesc(3906, "numrange", Numeric, 4532, "nummultirange")
	TSRange   = rangeDesc(3908, "tsrange", Timestamp, 4533, "tsmultirange")
	TSTZRange = rangeDesc(3910, "tstzrange", TimestampTZ, 4534, "tstzmultirange")
	DateRange = rangeDesc(3912, "daterange", Date, 4535, "datemultirange")
	Int8Range = rangeDesc(3926, "int8range", Int8, 4536, "int8multirange")
)

// rangeTypes lists the built-in range types with the OIDs of the array types of
// each and of its multirange type.
var rangeTypes = []struct {
	typ               *Desc
	array, multiArray OID
}{
	{Int4Range, 3905, 6150},
	{NumRange, 3907, 6151},
	{TSRange, 3909, 6152},
	{TSTZRange, 3911, 6153},
	{DateRange, 3913, 6155},
	{Int8Range, 3927, 6157},
}

// The polymorphic pseudo-types over ranges.
var (
	AnyRange                = &Desc{OID: 3831, Name: "anyrange", Len: -1, Kind: Pseudo, Category: 'P'}
	AnyMultirange           = &Desc{OID: 4537, Name: "anymultirange", Len: -1, Kind: Pseudo, Category: 'P'}
	AnyCompatibleRange      = &Desc{OID: 5080, Name: "anycompatiblerange", Len: -1, Kind: Pseudo, Category: 'P'}
	AnyCompatibleMultirange = &Desc{OID: 4538, Name: "anycompatiblemultirange", Len: -1, Kind: Pseudo, Category: 'P'}
)

// NewRange makes a range type over a subtype that has an order (pg_range), with
// its multirange type.
func NewRange(oid OID, name string, sub *Desc, multiOID OID, multiName string) *Desc {
	t := rangeDesc(oid, name, sub, multiOID, multiName)
	setRangeFunctions(t)
	setMultirangeFunctions(t.Multi)
	return t
}

func rangeDesc(oid OID, name string, sub *Desc, multiOID OID, multiName string) *Desc {
	t := &Desc{OID: oid, Name: name, Len: -1, Kind: Range, Category: 'R', Sub: sub}
	t.Multi = &Desc{OID: multiOID, Name: multiName, Len: -1, Kind: Multirange, Category: 'R', Range: t}
	return t
}

func setRangeFunctions(t *Desc) {
	switch t { // a canonical function is never derived from the subtype
	case Int4Range:
		t.canonical = canonicalInts(Int4, 1<<31-1)
	case Int8Range:
		t.canonical = canonicalInts(Int8, 1<<63-1)
	case DateRange:
		t.canonical = canonicalDates
	}
	t.text(func(s string, _ int32, f *Format) (Datum, error) { return parseRange(t, s, f) },
		func(dst []byte, d Datum, f *Format) []byte { return appendRange(dst, t, d, f) })
	t.binary(func(b []byte, _ int32) (Datum, error) { return parseBinaryRange(t, b) },
		func(dst []byte, d Datum) []byte { return appendBinaryRange(dst, t, d) })
	t.Compare = compareRanges(t)
	if t.Sub.AppendKey != nil {
		t.AppendKey, t.SkipKey = keyOfRange(t), skipRangeKey(t)
	}
	if t.Sub.Hash != nil {
		t.Hash = hashOfRange(t)
	}
}

// canonicalInts turns bounds into [lower, upper) (int4range_canonical).
func canonicalInts(sub *Desc, last int64) func(lower, upper *Bound) error {
	next := func(b *Bound) error {
		if b.Val.Int() == last {
			return pgerr.New(pgerr.NumericValueOutOfRange, "%s out of range", FormatType(T(sub)))
		}
		b.Val = Int(b.Val.Int() + 1)
		return nil
	}
	return func(lower, upper *Bound) error {
		if !lower.Infinite && !lower.Inclusive {
			if err := next(lower); err != nil {
				return err
			}
			lower.Inclusive = true
		}
		if !upper.Infinite && upper.Inclusive {
			if err := next(upper); err != nil {
				return err
			}
			upper.Inclusive = false
		}
		return nil
	}
}

// canonicalDates is daterange_canonical: infinite dates stay as they are.
func canonicalDates(lower, upper *Bound) error {
	next := func(b *Bound) error {
		day := b.Val.Int() + 1
		if !validDate(day) {
			return pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range")
		}
		b.Val, b.Inclusive = Int(day), b.Lower
		return nil
	}
	if !lower.Infinite && !lower.Inclusive && finiteDate(int32(lower.Val.Int())) {
		if err := next(lower); err != nil {
			return err
		}
	}
	if !upper.Infinite && upper.Inclusive && finiteDate(int32(upper.Val.Int())) {
		return next(upper)
	}
	return nil
}
