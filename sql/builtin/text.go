package builtin

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// maxAlloc is the largest value of a variable-length type, as in PostgreSQL.
const maxAlloc = 1<<30 - 1

// text1 lifts a function over strings.
func text1(f func(s string) string) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Str(f(a[0].Str())), nil }
}

func textInt(f func(s string) int) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Int(int64(f(a[0].Str()))), nil }
}

// spendBytes charges the budget for output that a small input can make large.
func spendBytes(c *Ctx, n int64) error {
	if n > maxAlloc {
		return pgerr.New(pgerr.ProgramLimitExceeded, "requested length too large")
	}
	return c.Budget.Spend(n / 64)
}

func trimBlanks(s string) string { return strings.TrimRight(s, " ") }

// runeOffset is the byte offset of character i (from 0), at most len(s).
func runeOffset(s string, i int64) int {
	if i <= 0 {
		return 0
	}
	if i >= int64(len(s)) {
		i = int64(len(s)) // no string has more characters than bytes
	}
	off := 0
	for ; i > 0 && off < len(s); i-- {
		_, n := utf8.DecodeRuneInString(s[off:])
		off += n
	}
	return off
}

// sliceBounds turns SQL's (start from 1, length) into the range [lo, hi)
// counted from 0; start may lie before the string and eats up length.
func sliceBounds(start, length int64, hasLength bool) (lo, hi int64, err error) {
	lo, hi = start-1, 1<<62
	if hasLength {
		if length < 0 {
			return 0, 0, pgerr.New(pgerr.SubstringError, "negative substring length not allowed")
		}
		hi = lo + length
	}
	return max(lo, 0), max(hi, 0), nil
}

func substr(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Str()
	var length int64
	if len(a) == 3 {
		length = a[2].Int()
	}
	lo, hi, err := sliceBounds(a[1].Int(), length, len(a) == 3)
	if err != nil {
		return datum.Null, err
	}
	if lo >= hi {
		return datum.Str(""), nil
	}
	s = s[runeOffset(s, lo):]
	return datum.Str(s[:runeOffset(s, hi-lo)]), nil
}

func byteaSubstr(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Str()
	var length int64
	if len(a) == 3 {
		length = a[2].Int()
	}
	lo, hi, err := sliceBounds(a[1].Int(), length, len(a) == 3)
	if err != nil {
		return datum.Null, err
	}
	n := int64(len(s))
	lo, hi = min(lo, n), min(hi, n)
	if lo >= hi {
		return datum.Str(""), nil
	}
	return datum.Str(s[lo:hi]), nil
}

// textPosition counts characters from 1; 0 means absent.
func textPosition(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Str()
	i := strings.Index(s, a[1].Str())
	if i < 0 {
		return datum.Int(0), nil
	}
	return datum.Int(int64(utf8.RuneCountInString(s[:i]) + 1)), nil
}

func byteaPosition(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Int(int64(strings.Index(a[0].Str(), a[1].Str()) + 1)), nil
}

// left and right count from the other end if n is negative.
func left(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, n := a[0].Str(), a[1].Int()
	if n < 0 {
		n += int64(utf8.RuneCountInString(s))
	}
	return datum.Str(s[:runeOffset(s, n)]), nil
}

func right(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, n := a[0].Str(), a[1].Int()
	if n < 0 {
		n = -n
	} else {
		n = int64(utf8.RuneCountInString(s)) - n
	}
	return datum.Str(s[runeOffset(s, n):]), nil
}

func pad(atLeft bool) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		s, n, fill := a[0].Str(), max(a[1].Int(), 0), " "
		if len(a) == 3 {
			fill = a[2].Str()
		}
		if err := spendBytes(c, n*4); err != nil {
			return datum.Null, err
		}
		have := int64(utf8.RuneCountInString(s))
		if have >= n || fill == "" {
			return datum.Str(s[:runeOffset(s, n)]), nil
		}
		padding := padding(fill, n-have)
		if atLeft {
			return datum.Str(padding + s), nil
		}
		return datum.Str(s + padding), nil
	}
}

// padding repeats fill to n characters.
func padding(fill string, n int64) string {
	chars := int64(utf8.RuneCountInString(fill))
	var b strings.Builder
	for ; n >= chars; n -= chars {
		b.WriteString(fill)
	}
	b.WriteString(fill[:runeOffset(fill, n)])
	return b.String()
}

type trimSide uint8

const (
	trimLeft trimSide = 1 << iota
	trimRight
)

func trim(side trimSide) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		s, set := a[0].Str(), " "
		if len(a) == 2 {
			set = a[1].Str()
		}
		if side&trimLeft != 0 {
			s = strings.TrimLeft(s, set)
		}
		if side&trimRight != 0 {
			s = strings.TrimRight(s, set)
		}
		return datum.Str(s), nil
	}
}

func trimBytes(side trimSide) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		s, set := a[0].Str(), a[1].Str()
		if side&trimLeft != 0 {
			for len(s) > 0 && strings.IndexByte(set, s[0]) >= 0 {
				s = s[1:]
			}
		}
		if side&trimRight != 0 {
			for len(s) > 0 && strings.IndexByte(set, s[len(s)-1]) >= 0 {
				s = s[:len(s)-1]
			}
		}
		return datum.Str(s), nil
	}
}

// initcap starts every run of letters and digits with a capital.
func initcap(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	inWord := false
	for _, r := range s {
		if inWord {
			b.WriteRune(unicode.ToLower(r))
		} else {
			b.WriteRune(unicode.ToUpper(r))
		}
		inWord = unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	return b.String()
}

// mapRunes changes case character by character, as towlower() does: no
// mapping to several characters.
func mapRunes(f func(rune) rune) func(string) string {
	return func(s string) string { return strings.Map(f, s) }
}

func replace(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, from, to := a[0].Str(), a[1].Str(), a[2].Str()
	if s == "" || from == "" {
		return a[0], nil
	}
	n := strings.Count(s, from)
	if n == 0 {
		return a[0], nil
	}
	if err := spendBytes(c, int64(len(s))+int64(n)*int64(len(to)-len(from))); err != nil {
		return datum.Null, err
	}
	return datum.Str(strings.ReplaceAll(s, from, to)), nil
}

// translate maps the characters of from to those at the same place in to, and
// drops those that have none.
func translate(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	from, to := []rune(a[1].Str()), []rune(a[2].Str())
	return datum.Str(strings.Map(func(r rune) rune {
		for i, f := range from {
			if f == r {
				if i < len(to) {
					return to[i]
				}
				return -1
			}
		}
		return r
	}, a[0].Str())), nil
}

func splitPart(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, sep, n := a[0].Str(), a[1].Str(), a[2].Int()
	if n == 0 {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "field position must not be zero")
	}
	if s == "" {
		return a[0], nil
	}
	if sep == "" {
		if n == 1 || n == -1 {
			return a[0], nil
		}
		return datum.Str(""), nil
	}
	if n < 0 {
		n += int64(strings.Count(s, sep)) + 2
	}
	for ; n > 0; n-- {
		field, rest, found := strings.Cut(s, sep)
		if n == 1 {
			return datum.Str(field), nil
		}
		if !found {
			break
		}
		s = rest
	}
	return datum.Str(""), nil
}

func repeat(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, n := a[0].Str(), max(a[1].Int(), 0)
	if err := spendBytes(c, int64(len(s))*n); err != nil {
		return datum.Null, err
	}
	return datum.Str(strings.Repeat(s, int(n))), nil
}

func reverse(s string) string {
	b := make([]byte, len(s))
	for at := len(b); s != ""; {
		_, n := utf8.DecodeRuneInString(s)
		at -= n
		copy(b[at:], s[:n])
		s = s[n:]
	}
	return string(b)
}

// overlay replaces length characters from start on; the length defaults to that
// of the new text.
func overlay(runes bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		s, with, start := a[0].Str(), a[1].Str(), a[2].Int()
		length := int64(len(with))
		if runes {
			length = int64(utf8.RuneCountInString(with))
		}
		if len(a) == 4 {
			length = a[3].Int()
		}
		if start <= 0 {
			return datum.Null, pgerr.New(pgerr.SubstringError, "negative substring length not allowed")
		}
		if start+length > width4.max {
			return datum.Null, outOfRange("integer")
		}
		lo, hi := start-1, max(start-1+length, 0)
		if runes {
			return datum.Str(s[:runeOffset(s, lo)] + with + s[runeOffset(s, hi):]), nil
		}
		n := int64(len(s))
		return datum.Str(s[:min(lo, n)] + with + s[min(hi, n):]), nil
	}
}

func ascii(s string) int {
	if s == "" {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(s)
	return int(r)
}

func chr(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	n := a[0].Int()
	switch {
	case n < 0:
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "character number must be positive")
	case n == 0:
		return datum.Null, pgerr.New(pgerr.ProgramLimitExceeded, "null character not permitted")
	case n > utf8.MaxRune:
		return datum.Null, pgerr.New(pgerr.ProgramLimitExceeded, "requested character too large for encoding: %d", n)
	case n >= 0xD800 && n < 0xE000:
		return datum.Null, pgerr.New(pgerr.ProgramLimitExceeded, "requested character not valid for encoding: %d", n)
	}
	return datum.Str(string(rune(n))), nil
}

func concatText(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	l, r := a[0], a[1]
	if len(l.Str()) == 0 {
		return r, nil
	}
	if len(r.Str()) == 0 {
		return l, nil
	}
	if err := spendBytes(c, int64(len(l.Str())+len(r.Str()))); err != nil {
		return datum.Null, err
	}
	return datum.Str(l.Str() + r.Str()), nil
}

// appendOut appends the text form of a value: strings as they are.
func appendOut(dst []byte, t *datum.Desc, d datum.Datum, f *datum.Format) []byte {
	if t == datum.Text || t == datum.VarChar || t == datum.Unknown {
		return append(dst, d.Str()...)
	}
	return t.Append(dst, d, f)
}

// appendCast appends what a cast to text gives, which differs from the text form
// for booleans only.
func appendCast(dst []byte, t *datum.Desc, d datum.Datum, f *datum.Format) []byte {
	if t == datum.BoolType {
		return strconv.AppendBool(dst, d.Bool())
	}
	return appendOut(dst, t, d, f)
}

// bindTextAny implements text || anynonarray (left = true) and its mirror.
func bindTextAny(textFirst bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		l, r := args[0].Root().Desc, args[1].Root().Desc
		if textFirst {
			l = datum.Text
		} else {
			r = datum.Text
		}
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			b := appendCast(nil, l, a[0], c.Format)
			return datum.Bytes(appendCast(b, r, a[1], c.Format)), nil
		}, nil
	}
}

// bindConcat implements concat and concat_ws. The variadic arguments come one by
// one, or as one array after VARIADIC.
func bindConcat(withSeparator bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		first := 0
		if withSeparator {
			first = 1
		}
		types := descsOf(args)
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			sep := ""
			if withSeparator {
				if a[0].IsNull() {
					return datum.Null, nil
				}
				sep = a[0].Str()
			}
			var b []byte
			n := 0
			for i := first; i < len(a); i++ {
				if a[i].IsNull() {
					continue
				}
				if n > 0 {
					b = append(b, sep...)
				}
				b = appendOut(b, types[i], a[i], c.Format)
				n++
			}
			return datum.Bytes(b), nil
		}, nil
	}
}

func descsOf(types []datum.Type) []*datum.Desc {
	out := make([]*datum.Desc, len(types))
	for i, t := range types {
		out[i] = t.Root().Desc
	}
	return out
}

func toHex(bits int) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		v := uint64(a[0].Int())
		if bits == 32 {
			v = uint64(uint32(v))
		}
		return datum.Str(hexDigits(v)), nil
	}
}

func hexDigits(v uint64) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	at := len(b)
	for {
		at--
		b[at] = digits[v&15]
		if v >>= 4; v == 0 {
			return string(b[at:])
		}
	}
}

var textEvals = evalMap{
	"textlen": textInt(utf8.RuneCountInString), "textoctetlen": textInt(func(s string) int { return len(s) }),
	"byteaoctetlen":     textInt(func(s string) int { return len(s) }),
	"bpcharlen":         textInt(func(s string) int { return utf8.RuneCountInString(trimBlanks(s)) }),
	"bpcharoctetlen":    textInt(func(s string) int { return len(s) }),
	"bit_length(text)":  textInt(func(s string) int { return len(s) * 8 }),
	"bit_length(bytea)": textInt(func(s string) int { return len(s) * 8 }),
	"lower":             text1(mapRunes(unicode.ToLower)), "upper": text1(mapRunes(unicode.ToUpper)), "initcap": text1(initcap),
	"text_substr": substr, "text_substr_no_len": substr,
	"bytea_substr": byteaSubstr, "bytea_substr_no_len": byteaSubstr,
	"textpos": textPosition, "byteapos": byteaPosition,
	"text_left": left, "text_right": right, "text_reverse": text1(reverse), "repeat": repeat,
	"lpad": pad(true), "rpad": pad(false), "lpad(text,int4)": pad(true), "rpad(text,int4)": pad(false),
	"ltrim": trim(trimLeft), "rtrim": trim(trimRight), "btrim": trim(trimLeft | trimRight),
	"ltrim1": trim(trimLeft), "btrim1": trim(trimLeft | trimRight), "rtrim1": trim(trimRight),
	"bytealtrim": trimBytes(trimLeft), "byteartrim": trimBytes(trimRight), "byteatrim": trimBytes(trimLeft | trimRight),
	"replace_text": replace, "translate": translate, "split_part": splitPart,
	"textoverlay": overlay(true), "textoverlay_no_len": overlay(true),
	"byteaoverlay": overlay(false), "byteaoverlay_no_len": overlay(false),
	"ascii": textInt(ascii), "chr": chr, "textcat": concatText, "byteacat": concatText,
	"to_hex32": toHex(32), "to_hex64": toHex(64),
	"text_starts_with": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Bool(strings.HasPrefix(a[0].Str(), a[1].Str())), nil
	},
	// Casts between the string types; the lengths are Desc.Coerce's matter.
	"name_text": same, "text_name": toName, "name_bpchar": same, "bpchar_name": func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		return toName(c, []datum.Datum{datum.Str(trimBlanks(a[0].Str()))})
	},
	"char_text": charToText, "char_bpchar": charToText, "text_char": textToChar,
	"chartoi4": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Int(int64(int8(a[0].Int()))), nil },
	"i4tochar": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		if v := a[0].Int(); v < -128 || v > 127 {
			return datum.Null, pgerr.New(pgerr.NumericValueOutOfRange, "\"char\" out of range")
		}
		return datum.Int(int64(uint8(a[0].Int()))), nil
	},
	"booltext":        boolText,
	"text_pattern_lt": textComparisons["<"], "text_pattern_le": textComparisons["<="],
	"text_pattern_gt": textComparisons[">"], "text_pattern_ge": textComparisons[">="],
	"bpchar_pattern_lt": comparison("<", compareBpChar), "bpchar_pattern_le": comparison("<=", compareBpChar),
	"bpchar_pattern_gt": comparison(">", compareBpChar), "bpchar_pattern_ge": comparison(">=", compareBpChar),
	"bpchar": coerceLength(datum.BpChar), "varchar": coerceLength(datum.VarChar),
}

var textBinds = bindMap{
	"textanycat(text,anynonarray)": bindTextAny(true), "anytextcat(anynonarray,text)": bindTextAny(false),
	"text_concat": bindConcat(false), "text_concat_ws": bindConcat(true),
}

func compareBpChar(a, b datum.Datum) int { return datum.BpChar.Compare(a, b) }

func coerceLength(d *datum.Desc) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return d.Coerce(a[0], int32(a[1].Int()), a[2].Bool())
	}
}

// toName cuts to 63 bytes at a character boundary.
func toName(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Str()
	if len(s) <= 63 {
		return a[0], nil
	}
	n := 63
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return datum.Str(s[:n]), nil
}

func charToText(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Bytes(datum.Char.Append(nil, a[0], c.Format)), nil
}

func textToChar(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Char.Parse(a[0].Str(), -1, c.Format)
}

func boolText(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Str(strconv.FormatBool(a[0].Bool())), nil
}
