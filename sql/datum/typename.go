package datum

import (
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// sqlNames are the SQL spellings of types whose pg_type name differs.
var sqlNames = map[OID]string{
	BoolOID: "boolean", BpCharOID: "character", CharOID: `"char"`, Float4OID: "real", Float8OID: "double precision",
	Int2OID: "smallint", Int4OID: "integer", Int8OID: "bigint", VarCharOID: "character varying",
	AnyOID: `"any"`,
}

// FormatType is format_type(oid, typmod): "character varying(10)",
// "timestamp(3) with time zone", "integer[]". Names of user types are
// qualified with their Schema.
func FormatType(t Type) string {
	if t.Desc == nil {
		return "-"
	}
	if t.IsArray() {
		return FormatType(Type{Desc: t.Elem, Mod: t.Mod}) + "[]"
	}
	mod := t.Mod
	switch t.OID {
	case BpCharOID:
		if mod < 0 {
			// Plain "character" would mean character(1).
			return "bpchar"
		}
		return "character(" + itoa(mod-4) + ")"
	case VarCharOID:
		if mod >= 4 {
			return "character varying(" + itoa(mod-4) + ")"
		}
	case NumericOID:
		if p, s, ok := numericMod(mod); ok {
			return "numeric(" + strconv.Itoa(p) + "," + strconv.Itoa(s) + ")"
		}
	case TimeOID:
		return "time" + precision(mod) + " without time zone"
	case TimeTZOID:
		return "time" + precision(mod) + " with time zone"
	case TimestampOID:
		return "timestamp" + precision(mod) + " without time zone"
	case TimestampTZOID:
		return "timestamp" + precision(mod) + " with time zone"
	case IntervalOID:
		return "interval" + intervalModText(mod)
	}
	if name, ok := sqlNames[t.OID]; ok {
		return name
	}
	if t.Schema != "" {
		return QuoteIdent(t.Schema) + "." + QuoteIdent(t.Name)
	}
	return QuoteIdent(t.Name)
}

func itoa(v int32) string { return strconv.Itoa(int(v)) }

func precision(mod int32) string {
	if mod < 0 {
		return ""
	}
	return "(" + itoa(mod) + ")"
}

// QuoteIdent quotes an identifier unless it is lower case letters, digits and
// underscores. It knows no keywords: quote_ident, which does, is elsewhere.
func QuoteIdent(s string) string {
	plain := s != ""
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c == '_' || i > 0 && (isDigit(c) || c == '$')) {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// The bits of an interval modifier's field mask, by datetime field (dt.h).
const (
	maskYear   = 1 << 2
	maskMonth  = 1 << 1
	maskDay    = 1 << 3
	maskHour   = 1 << 10
	maskMinute = 1 << 11
	maskSecond = 1 << 12

	intervalFullRange     = 0x7fff
	intervalFullPrecision = 0xffff
)

var intervalRanges = []struct {
	mask int32
	name string
}{
	{maskYear, " year"},
	{maskMonth, " month"},
	{maskDay, " day"},
	{maskHour, " hour"},
	{maskMinute, " minute"},
	{maskSecond, " second"},
	{maskYear | maskMonth, " year to month"},
	{maskDay | maskHour, " day to hour"},
	{maskDay | maskHour | maskMinute, " day to minute"},
	{maskDay | maskHour | maskMinute | maskSecond, " day to second"},
	{maskHour | maskMinute, " hour to minute"},
	{maskHour | maskMinute | maskSecond, " hour to second"},
	{maskMinute | maskSecond, " minute to second"},
}

func intervalModText(mod int32) string {
	if mod < 0 {
		return ""
	}
	s := ""
	for _, r := range intervalRanges {
		if r.mask == mod>>16&0x7fff {
			s = r.name
		}
	}
	if p := mod & 0xffff; p != intervalFullPrecision {
		s += "(" + itoa(p) + ")"
	}
	return s
}

// ModIn turns the constants written after a type name into a type modifier, as
// the typmodin functions do (22023). For an interval args is the field mask and
// an optional precision, as the grammar delivers them.
func ModIn(t *Desc, args []int64) (int32, error) {
	bad := func(format string, a ...any) error {
		return pgerr.New(pgerr.InvalidParameterValue, format, a...)
	}
	if t.IsArray() {
		return ModIn(t.Elem, args)
	}
	if len(args) == 0 {
		return -1, nil
	}
	switch t.OID {
	case VarCharOID, BpCharOID:
		name := map[OID]string{VarCharOID: "varchar", BpCharOID: "char"}[t.OID]
		if len(args) != 1 {
			return -1, bad("invalid type modifier")
		}
		if args[0] < 1 {
			return -1, bad("length for type %s must be at least 1", name)
		}
		if args[0] > 10<<20 {
			return -1, bad("length for type %s cannot exceed %d", name, 10<<20)
		}
		return int32(args[0]) + 4, nil
	case NumericOID:
		return numericModIn(args, bad)
	case TimeOID, TimeTZOID, TimestampOID, TimestampTZOID:
		if len(args) != 1 {
			return -1, bad("invalid type modifier")
		}
		if args[0] < 0 {
			return -1, bad("%s(%d)%s precision must not be negative", timeWord(t), args[0], zoneWord(t))
		}
		return int32(min(args[0], 6)), nil
	case IntervalOID:
		return intervalModIn(args, bad)
	}
	return -1, pgerr.New(pgerr.SyntaxError, `type modifier is not allowed for type "%s"`, FormatType(T(t)))
}

func numericModIn(args []int64, bad func(string, ...any) error) (int32, error) {
	if len(args) > 2 {
		return -1, bad("invalid NUMERIC type modifier")
	}
	if args[0] < 1 || args[0] > 1000 {
		return -1, bad("NUMERIC precision %d must be between 1 and 1000", args[0])
	}
	scale := int64(0)
	if len(args) == 2 {
		if scale = args[1]; scale < -1000 || scale > 1000 {
			return -1, bad("NUMERIC scale %d must be between -1000 and 1000", scale)
		}
	}
	return int32(args[0]<<16|scale&0x7ff) + 4, nil
}

func intervalModIn(args []int64, bad func(string, ...any) error) (int32, error) {
	fields := int32(args[0])
	known := fields == intervalFullRange
	for _, r := range intervalRanges {
		known = known || r.mask == fields
	}
	if !known || len(args) > 2 {
		return -1, bad("invalid INTERVAL type modifier")
	}
	if len(args) == 1 {
		if fields == intervalFullRange {
			return -1, nil
		}
		return fields<<16 | intervalFullPrecision, nil
	}
	if args[1] < 0 {
		return -1, bad("INTERVAL(%d) precision must not be negative", args[1])
	}
	return fields<<16 | int32(min(args[1], 6)), nil
}

func timeWord(t *Desc) string {
	if t.OID == TimeOID || t.OID == TimeTZOID {
		return "TIME"
	}
	return "TIMESTAMP"
}

func zoneWord(t *Desc) string {
	if t.OID == TimeTZOID || t.OID == TimestampTZOID {
		return " WITH TIME ZONE"
	}
	return ""
}
