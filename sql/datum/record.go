package datum

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// A record or composite value is the number of fields (uvarint) and, for each,
// the OID of its type (four bytes, big endian), its storeClass (plus 0x80 for a
// null) and the value as rows store it. Domains are stored as what they are
// based on. So a record prints and compares without a descriptor of its own.
const recordNull = 0x80

// MakeRecord makes a record from values and their types.
func MakeRecord(types []Type, vals []Datum) Datum {
	b := appendUvarint(make([]byte, 0, 2+14*len(vals)), uint64(len(vals)))
	for i, v := range vals {
		t := types[i].Root()
		b = binary.BigEndian.AppendUint32(b, uint32(t.OID))
		if v.IsNull() {
			b = append(b, byte(t.store)|recordNull)
			continue
		}
		b = appendValue(append(b, byte(t.store)), t.store, v)
	}
	return Bytes(b)
}

// recordReader walks over the fields of a record.
type recordReader struct {
	n    int
	rest []byte
}

func openRecord(d Datum) recordReader {
	b := d.Bytes()
	u, n := uvarint(b)
	if n == 0 || u > uint64(len(b)) {
		return recordReader{}
	}
	return recordReader{int(u), b[n:]}
}

type recordField struct {
	oid   OID
	class storeClass
	val   Datum
}

func (r *recordReader) next() (f recordField, ok bool) {
	if r.n == 0 || len(r.rest) < 5 {
		return recordField{}, false
	}
	r.n--
	f.oid = OID(binary.BigEndian.Uint32(r.rest))
	class := r.rest[4]
	r.rest = r.rest[5:]
	f.class = storeClass(class &^ recordNull)
	if f.class >= storeClasses {
		r.n = 0
		return recordField{}, false
	}
	if class&recordNull != 0 {
		f.val = Null
		return f, true
	}
	v, n := readValue(r.rest, f.class)
	if n == 0 {
		r.n = 0
		return recordField{}, false
	}
	f.val, r.rest = v, r.rest[n:]
	return f, true
}

// RecordFields takes a record apart; the values refer to d's bytes.
func RecordFields(d Datum) (types []OID, vals []Datum) {
	r := openRecord(d)
	for f, ok := r.next(); ok; f, ok = r.next() {
		types = append(types, f.oid)
		vals = append(vals, f.val)
	}
	return types, vals
}

// RecordField is the i-th field from 0 of a record; null if it has fewer, as a
// value stored before the type got the field has.
func RecordField(d Datum, i int) Datum {
	r := openRecord(d)
	for f, ok := r.next(); ok; f, ok = r.next() {
		if i == 0 {
			return f.val
		}
		i--
	}
	return Null
}

// typeOf finds the type of a field: what the composite type says, a built-in
// type, what the format's hook knows. Otherwise the value is shown by its
// storage class.
func (f recordField) typeOf(declared []Field, i int, fm *Format) *Desc {
	if i < len(declared) && declared[i].Type.store == f.class {
		return declared[i].Type.Desc
	}
	if t := ByOID(f.oid); t != nil && t.store == f.class {
		return t
	}
	if fm != nil && fm.TypeByOID != nil {
		if t := fm.TypeByOID(f.oid); t != nil && t.store == f.class {
			return t
		}
	}
	switch f.class {
	case storeBytes:
		return Bytea
	case storeFloat4, storeFloat8:
		return Float8
	case storeNumeric:
		return Numeric
	case store16:
		return UUID
	case store12:
		return TimeTZ
	}
	return Int8
}

func appendRecord(declared []Field) func([]byte, Datum, *Format) []byte {
	return func(dst []byte, d Datum, fm *Format) []byte {
		var buf []byte
		dst = append(dst, '(')
		r := openRecord(d)
		i := 0
		for f, ok := r.next(); ok; f, ok = r.next() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if !f.val.IsNull() {
				buf = f.typeOf(declared, i, fm).Append(buf[:0], f.val, fm)
				dst = appendRecordField(dst, buf)
			}
			i++
		}
		for ; i < len(declared); i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
		}
		return append(dst, ')')
	}
}

// appendRecordField quotes a field where record_in would misread it.
func appendRecordField(dst, s []byte) []byte {
	quote := len(s) == 0
	for _, c := range s {
		if c == '"' || c == '\\' || c == '(' || c == ')' || c == ',' || isSpace(c) {
			quote = true
		}
	}
	if !quote {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for _, c := range s {
		if c == '"' || c == '\\' {
			dst = append(dst, c)
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

func errRecord(s, detail string) error {
	e := pgerr.New(pgerr.InvalidTextRepresentation, `malformed record literal: "%s"`, s)
	e.Detail = detail
	return e
}

func parseAnonymousRecord(string, int32, *Format) (Datum, error) {
	return Null, pgerr.New(pgerr.FeatureNotSupported, "input of anonymous composite types is not implemented")
}

// parseComposite reads (a,"b c",) for declared fields.
func parseComposite(fields []Field, s string, f *Format) (Datum, error) {
	t := s
	for t != "" && isSpace(t[0]) {
		t = t[1:]
	}
	if t == "" || t[0] != '(' {
		return Null, errRecord(s, "Missing left parenthesis.")
	}
	t = t[1:]
	vals := make([]Datum, len(fields))
	types := make([]Type, len(fields))
	for i, fd := range fields {
		if i > 0 {
			if t == "" || t[0] != ',' {
				return Null, errRecord(s, "Too few columns.")
			}
			t = t[1:]
		}
		types[i], vals[i] = fd.Type, Null
		text, null, rest, ok := scanRecordField(t)
		if !ok {
			return Null, errRecord(s, "Unexpected end of input.")
		}
		t = rest
		if null {
			continue
		}
		var err error
		if vals[i], err = fd.Type.Parse(text, fd.Type.Mod, f); err != nil {
			return Null, err
		}
	}
	if t == "" || t[0] != ')' {
		return Null, errRecord(s, "Too many columns.")
	}
	if strings.TrimFunc(t[1:], func(r rune) bool { return r < 0x80 && isSpace(byte(r)) }) != "" {
		return Null, errRecord(s, "Junk after right parenthesis.")
	}
	return MakeRecord(types, vals), nil
}

// scanRecordField reads up to the comma or parenthesis after a field; nothing
// at all means null.
func scanRecordField(s string) (text string, null bool, rest string, ok bool) {
	if s != "" && (s[0] == ',' || s[0] == ')') {
		return "", true, s, true
	}
	var b []byte
	quoted := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case !quoted && (c == ',' || c == ')'):
			return string(b), false, s[i:], true
		case c == '\\':
			if i++; i < len(s) {
				b = append(b, s[i])
			}
		case c == '"' && quoted && i+1 < len(s) && s[i+1] == '"':
			b = append(b, c)
			i++
		case c == '"':
			quoted = !quoted
		default:
			b = append(b, c)
		}
	}
	return "", false, "", false
}

func appendBinaryRecord(declared []Field) func([]byte, Datum) []byte {
	return func(dst []byte, d Datum) []byte {
		r := openRecord(d)
		dst = binary.BigEndian.AppendUint32(dst, uint32(max(r.n, len(declared))))
		i := 0
		for f, ok := r.next(); ok; f, ok = r.next() {
			oid := f.oid
			if i < len(declared) {
				oid = declared[i].Type.OID
			}
			dst = binary.BigEndian.AppendUint32(dst, uint32(oid))
			dst = appendBinaryField(dst, f.typeOf(declared, i, nil), f.val)
			i++
		}
		for ; i < len(declared); i++ {
			dst = binary.BigEndian.AppendUint32(dst, uint32(declared[i].Type.OID))
			dst = appendBinaryField(dst, nil, Null)
		}
		return dst
	}
}

func parseBinaryRecord(declared []Field) func([]byte, int32) (Datum, error) {
	return func(b []byte, _ int32) (Datum, error) {
		if declared == nil {
			return Null, pgerr.New(pgerr.FeatureNotSupported, "input of anonymous composite types is not implemented")
		}
		if len(b) < 4 {
			return Null, errShort()
		}
		if n := int(int32(binary.BigEndian.Uint32(b))); n != len(declared) {
			return Null, pgerr.New(pgerr.DatatypeMismatch, "wrong number of columns: %d, expected %d", n, len(declared))
		}
		b = b[4:]
		types, vals := make([]Type, len(declared)), make([]Datum, len(declared))
		for i, fd := range declared {
			if len(b) < 4 {
				return Null, errShort()
			}
			if oid := OID(binary.BigEndian.Uint32(b)); oid != fd.Type.OID {
				return Null, pgerr.New(pgerr.DatatypeMismatch, "binary data has type %d (%s) instead of expected %d (%s) in record column %d",
					oid, FormatType(T(ByOID(oid))), fd.Type.OID, FormatType(T(fd.Type.Desc)), i+1)
			}
			types[i] = fd.Type
			var err error
			if vals[i], b, err = parseBinaryField(b[4:], fd.Type.Desc, fd.Type.Mod); err != nil {
				return Null, err
			}
		}
		if len(b) > 0 {
			return Null, errBinary()
		}
		return MakeRecord(types, vals), nil
	}
}

// compareRecords goes field by field, nulls last. PostgreSQL refuses records of
// different shapes; here the caller has to, and they order by type and length.
func compareRecords(declared []Field) func(a, b Datum) int {
	return func(a, b Datum) int {
		x, y := openRecord(a), openRecord(b)
		for i := 0; ; i++ {
			f, ok1 := x.next()
			g, ok2 := y.next()
			if !ok1 || !ok2 {
				return cmp64(int64(boolBit(ok1)), int64(boolBit(ok2)))
			}
			if f.oid != g.oid {
				return cmp64(int64(f.oid), int64(g.oid))
			}
			compare := f.typeOf(declared, i, nil).Compare
			if compare == nil {
				compare = compareRaw(f.class)
			}
			if c := compareNullable(compare, f.val, g.val); c != 0 {
				return c
			}
		}
	}
}

func compareRaw(c storeClass) func(a, b Datum) int {
	if c == storeBytes {
		return compareBytes
	}
	return compareInt
}

func keyRecord(declared []Field) func([]byte, Datum) []byte {
	return func(dst []byte, d Datum) []byte {
		r := openRecord(d)
		i := 0
		for f, ok := r.next(); ok; f, ok = r.next() {
			if f.val.IsNull() {
				dst = append(dst, keyElemNull)
			} else {
				dst = f.typeOf(declared, i, nil).AppendKey(append(dst, keyElem), f.val)
			}
			i++
		}
		return append(dst, keyElemEnd)
	}
}

func skipRecordKey(declared []Field) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) {
		for i := 0; ; i++ {
			if len(b) == 0 {
				return nil, errBadKey()
			}
			mark := b[0]
			b = b[1:]
			switch {
			case mark == keyElemEnd:
				return b, nil
			case mark == keyElemNull:
			case mark == keyElem && i < len(declared):
				var err error
				if b, err = declared[i].Type.SkipKey(b); err != nil {
					return nil, err
				}
			default:
				return nil, errBadKey()
			}
		}
	}
}

func hashRecord(declared []Field) func(uint64, Datum) uint64 {
	return func(h uint64, d Datum) uint64 {
		r := openRecord(d)
		i := 0
		for f, ok := r.next(); ok; f, ok = r.next() {
			t := f.typeOf(declared, i, nil)
			switch {
			case f.val.IsNull():
				h = HashInt(h, 0x6e756c6c)
			case t.Hash != nil:
				h = t.Hash(h, f.val)
			default:
				h = HashInt(h, f.val.n)
			}
			i++
		}
		return h
	}
}

// NewComposite makes a composite type. The order of its values exists only if
// every field has one.
func NewComposite(oid OID, name string, fields []Field) *Desc {
	if fields == nil {
		fields = []Field{}
	}
	t := &Desc{OID: oid, Name: name, Len: -1, Kind: Composite, Category: 'C', Fields: fields}
	t.Parse = func(s string, _ int32, f *Format) (Datum, error) { return parseComposite(fields, s, f) }
	t.Append = appendRecord(fields)
	t.ParseBinary, t.AppendBinary = parseBinaryRecord(fields), appendBinaryRecord(fields)
	ordered, keyed, hashed := true, true, true
	for _, f := range fields {
		ordered = ordered && f.Type.Compare != nil
		keyed = keyed && f.Type.AppendKey != nil
		hashed = hashed && f.Type.Hash != nil
	}
	if ordered {
		t.Compare = compareRecords(fields)
	}
	if keyed {
		t.AppendKey, t.SkipKey = keyRecord(fields), skipRecordKey(fields)
	}
	if hashed {
		t.Hash = hashRecord(fields)
	}
	return t
}

// NewDomain makes a domain. Its constraints are not checked here; its values
// are those of the base type with the modifier.
func NewDomain(oid OID, name string, base Type) *Desc {
	t := *base.Desc
	t.OID, t.Name, t.Kind, t.Array, t.Base, t.Preferred = oid, name, Domain, nil, base, false
	t.Parse = func(s string, _ int32, f *Format) (Datum, error) { return base.Parse(s, base.Mod, f) }
	t.ParseBinary = func(b []byte, _ int32) (Datum, error) { return base.ParseBinary(b, base.Mod) }
	if base.Coerce != nil {
		t.Coerce = func(d Datum, _ int32, explicit bool) (Datum, error) { return base.Coerce(d, base.Mod, explicit) }
	}
	t.Elem = nil
	return &t
}

// NewEnum makes an enum; labels are in sort order.
func NewEnum(oid OID, name string, labels []EnumLabel) *Desc {
	t := &Desc{OID: oid, Name: name, Len: 4, Kind: Enum, Category: 'E', Fixed: true, Labels: labels, store: storeFloat4}
	t.Parse = func(s string, _ int32, _ *Format) (Datum, error) { return EnumValue(t, s) }
	t.Append = func(dst []byte, d Datum, _ *Format) []byte { return append(dst, EnumLabelOf(t, d)...) }
	t.ParseBinary = func(b []byte, _ int32) (Datum, error) { return EnumValue(t, string(b)) }
	t.AppendBinary = func(dst []byte, d Datum) []byte { return append(dst, EnumLabelOf(t, d)...) }
	t.order(compareFloat, keyFloat4, skipFixed(4), hashFloat)
	return t
}

// EnumValue is the value of a label (22P02 if there is none). Values of an enum
// are the Sort numbers of its labels, which never change, as float4.
func EnumValue(t *Desc, label string) (Datum, error) {
	for i := range t.Labels {
		if t.Labels[i].Label == label {
			return Float(float64(t.Labels[i].Sort)), nil
		}
	}
	return Null, pgerr.New(pgerr.InvalidTextRepresentation, `invalid input value for enum %s: "%s"`, QuoteIdent(t.Name), label)
}

// EnumLabelOf is the label of a value; its number if the type has no such label.
func EnumLabelOf(t *Desc, d Datum) string {
	for i := range t.Labels {
		if float64(t.Labels[i].Sort) == d.Float() {
			return t.Labels[i].Label
		}
	}
	return strconv.FormatFloat(d.Float(), 'g', -1, 32)
}
