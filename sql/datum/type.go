package datum

import (
	"time"
)

// OID is PostgreSQL's object identifier.
type OID uint32

// Kind is pg_type.typtype.
type Kind byte

// The kinds of types.
const (
	Base      Kind = 'b'
	Composite Kind = 'c'
	Domain    Kind = 'd'
	Enum      Kind = 'e'
	Pseudo    Kind = 'p'
	Range     Kind = 'r'
	// Multirange is a set of ranges.
	Multirange Kind = 'm'
)

// Desc describes one type. Descriptors of built-in types are package variables
// (Int4, Text, ...) and compared by pointer or by OID; those of user-defined
// types are made by the catalog.
type Desc struct {
	OID       OID
	Name      string // pg_type.typname: int4, varchar, _text
	Schema    string // that FormatType shows before the name; "" = none
	Len       int16  // pg_type.typlen: bytes, -1 variable, -2 C string
	Kind      Kind
	Category  byte // pg_type.typcategory
	Preferred bool // pg_type.typispreferred
	Elem      *Desc
	Array     *Desc // the array type of this type; nil if there is none
	// Fixed tells that the value lives in the datum itself.
	Fixed bool
	// Base is the underlying type of a domain, with its modifier.
	Base Type
	// Fields are the attributes of a composite type.
	Fields []Field
	// Labels are the labels of an enum in sort order.
	Labels []EnumLabel
	// Sub is the subtype of a range type, Multi its multirange type; Range is
	// the range type of a multirange type.
	Sub, Multi, Range *Desc
	// canonical rewrites the bounds of a range over a discrete subtype to the
	// one form of that range; nil for a continuous one.
	canonical func(lower, upper *Bound) error
	// store says how rows, arrays and records hold a value.
	store storeClass

	// Parse reads the text form and applies mod; 22P02 and the like on bad input.
	Parse func(s string, mod int32, f *Format) (Datum, error)
	// Append writes the text form of a value that is not null.
	Append func(dst []byte, d Datum, f *Format) []byte
	// ParseBinary reads PostgreSQL's binary form; 22P03 on bad input. The result
	// may refer to b.
	ParseBinary func(b []byte, mod int32) (Datum, error)
	// AppendBinary writes PostgreSQL's binary form.
	AppendBinary func(dst []byte, d Datum) []byte
	// Compare is the btree order of two values that are not null; nil if the
	// type has none. Values that compare equal have equal keys.
	Compare func(a, b Datum) int
	// AppendKey writes an order-preserving, self-terminating form: for values
	// a < b the bytes of a sort before those of b, and none is a prefix of
	// another. Nil if the type cannot be a key.
	AppendKey func(dst []byte, d Datum) []byte
	// SkipKey returns what follows one key of this type; used to split keys.
	SkipKey func(b []byte) (rest []byte, err error)
	// Hash feeds a value into a 64-bit hash; equal values have equal hashes.
	Hash func(h uint64, d Datum) uint64
	// Coerce applies a type modifier to a value (length, precision); nil if the
	// type takes none. Explicit casts truncate where assignments raise 22001.
	Coerce func(d Datum, mod int32, explicit bool) (Datum, error)
}

// Type is a descriptor with a type modifier as PostgreSQL encodes it
// (varchar(n): n+4; numeric(p,s): (p<<16|s)+4; -1: none). The zero Type has no
// descriptor and means "not known".
type Type struct {
	*Desc
	Mod int32
}

// T is the type d without a modifier.
func T(d *Desc) Type { return Type{Desc: d, Mod: -1} }

// Same reports whether two types have the same OID; modifiers do not count.
func (t Type) Same(u Type) bool {
	return t.Desc == u.Desc || t.Desc != nil && u.Desc != nil && t.OID == u.OID
}

// DateStyle is the output order and style of dates.
type DateStyle uint8

// The date styles; the order (DMY, MDY, YMD) of ambiguous input is Format.Order.
const (
	ISO DateStyle = iota
	SQL
	Postgres
	German
)

// DateOrder is how an ambiguous date is read.
type DateOrder uint8

// The date orders.
const (
	MDY DateOrder = iota
	DMY
	YMD
)

// Format holds the settings that text forms depend on. Contracts always run
// with [ContractFormat].
type Format struct {
	DateStyle     DateStyle
	DateOrder     DateOrder
	Zone          *time.Location // from embedded zone data only
	ZoneName      string
	IntervalStyle IntervalStyle
	// FloatDigits is extra_float_digits: above 0 the shortest exact form.
	FloatDigits int
	// ByteaEscape selects bytea_output = escape instead of hex.
	ByteaEscape bool
	// Now is the timestamptz (microseconds since 2000-01-01 UTC) that the words
	// "now", "today", "yesterday" and "tomorrow" refer to. NoNow refuses them
	// with 0A000: a contract has no clock.
	Now   int64
	NoNow bool
	// RegName gives the text form of a reg* value (a name, quoted and qualified
	// where needed); RegOID the opposite. Both nil outside a session.
	RegName func(t *Desc, oid OID) string
	RegOID  func(t *Desc, name string) (OID, error)
	// TypeByOID finds user-defined types inside anonymous records; nil knows
	// the built-in ones only.
	TypeByOID func(oid OID) *Desc
}

// IntervalStyle is the output style of intervals.
type IntervalStyle uint8

// The interval styles.
const (
	IntervalPostgres IntervalStyle = iota
	IntervalPostgresVerbose
	IntervalSQLStandard
	IntervalISO8601
)

// ContractFormat is the format in which contracts run and values are made
// canonical: ISO, UTC, exact floats, hex.
var ContractFormat = Format{Zone: time.UTC, ZoneName: "UTC", FloatDigits: 1, NoNow: true}
