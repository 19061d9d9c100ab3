package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// parseIdent is parse_ident: the parts of a qualified name. What follows the
// last part is an error if strict.
func parseIdent(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	whole, strict := a[0].Str(), a[1].Bool()
	bad := func(detail string) error {
		e := pgerr.New(pgerr.InvalidParameterValue, "string is not a valid identifier: \"%s\"", whole)
		if detail != "" {
			e = e.WithDetail("%s", detail)
		}
		return e
	}
	var parts []datum.Datum
	s := skipBlanks(whole)
	afterDot := false
	for {
		part, rest, quoted, ok := scanIdent(s)
		switch {
		case !ok:
			return datum.Null, bad("String has unclosed double quotes.")
		case quoted && part == "":
			return datum.Null, bad("Quoted identifier must not be empty.")
		case part == "" && strings.HasPrefix(s, "."):
			return datum.Null, bad("No valid identifier before \".\".")
		case part == "" && afterDot:
			return datum.Null, bad("No valid identifier after \".\".")
		case part == "":
			return datum.Null, bad("")
		}
		parts = append(parts, datum.Str(part))
		s = skipBlanks(rest)
		if !strings.HasPrefix(s, ".") {
			break
		}
		afterDot, s = true, skipBlanks(s[1:])
	}
	if s != "" && strict {
		return datum.Null, bad("")
	}
	return datum.MakeArray(datum.Text, parts), nil
}

func skipBlanks(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	return s
}

// scanIdent reads one name, which is lower case unless quoted.
func scanIdent(s string) (part, rest string, quoted, ok bool) {
	if strings.HasPrefix(s, `"`) {
		var b strings.Builder
		for i := 1; i < len(s); i++ {
			switch {
			case s[i] != '"':
				b.WriteByte(s[i])
			case i+1 < len(s) && s[i+1] == '"':
				b.WriteByte('"')
				i++
			default:
				return b.String(), s[i+1:], true, true
			}
		}
		return "", "", true, false
	}
	n := 0
	for n < len(s) && (s[n] >= 0x80 || s[n] == '_' || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z' || n > 0 && (s[n] == '$' || s[n] >= '0' && s[n] <= '9')) {
		n++
	}
	return lowerASCII(s[:n]), s[n:], false, true
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// unistr replaces \XXXX, \+XXXXXX, \uXXXX and \UXXXXXXXX by the characters that
// they number, and \\ by one.
func unistr(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Str()
	out := make([]byte, 0, len(s))
	high := rune(0)
	noPair := func() error { return pgerr.New(pgerr.SyntaxError, "invalid Unicode surrogate pair") }
	for s != "" {
		if s[0] != '\\' || strings.HasPrefix(s, `\\`) {
			if high != 0 {
				return datum.Null, noPair()
			}
			out = append(out, s[0])
			if s[0] == '\\' {
				s = s[1:]
			}
			s = s[1:]
			continue
		}
		v, n, ok := unicodeEscape(s)
		switch {
		case !ok:
			return datum.Null, pgerr.New(pgerr.SyntaxError, "invalid Unicode escape").
				WithHint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
		case v > utf8.MaxRune || v <= 0:
			return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "invalid Unicode code point: %04X", v)
		}
		s = s[n:]
		isHigh, isLow := v >= 0xd800 && v < 0xdc00, v >= 0xdc00 && v < 0xe000
		switch {
		case isHigh && high == 0:
			high = v
			continue
		case isLow && high != 0:
			v, high = 0x10000+(high&0x3ff)<<10+v&0x3ff, 0
		case isHigh || isLow || high != 0:
			return datum.Null, noPair()
		}
		out = utf8.AppendRune(out, v)
	}
	if high != 0 {
		return datum.Null, noPair()
	}
	return datum.Bytes(out), nil
}

// unicodeEscape reads one escape: the number and the length of what it is
// written with.
func unicodeEscape(s string) (v rune, n int, ok bool) {
	skip, digits := 1, 4
	switch {
	case strings.HasPrefix(s, `\+`):
		skip, digits = 2, 6
	case strings.HasPrefix(s, `\u`):
		skip = 2
	case strings.HasPrefix(s, `\U`):
		skip, digits = 2, 8
	}
	if len(s) < skip+digits {
		return 0, 0, false
	}
	var u uint32
	for _, c := range []byte(s[skip : skip+digits]) {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if d < 0 || c < '0' {
			return 0, 0, false
		}
		u = u<<4 | uint32(d)
	}
	if u > unicode.MaxRune {
		return rune(u & 0x7fffffff), skip + digits, true
	}
	return rune(u), skip + digits, true
}

// normalForm finds one of Unicode's normalization forms.
func normalForm(name string) (norm.Form, error) {
	switch strings.ToUpper(name) {
	case "NFC":
		return norm.NFC, nil
	case "NFD":
		return norm.NFD, nil
	case "NFKC":
		return norm.NFKC, nil
	case "NFKD":
		return norm.NFKD, nil
	}
	return 0, pgerr.New(pgerr.InvalidParameterValue, "invalid normalization form: %s", name)
}

func unicodeNormalize(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	f, err := normalForm(a[1].Str())
	if err != nil {
		return datum.Null, err
	}
	if err := c.Budget.Spend(int64(len(a[0].Str())) / 16); err != nil {
		return datum.Null, err
	}
	return datum.Str(f.String(a[0].Str())), nil
}

func isNormalized(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	f, err := normalForm(a[1].Str())
	if err != nil {
		return datum.Null, err
	}
	if err := c.Budget.Spend(int64(len(a[0].Str())) / 16); err != nil {
		return datum.Null, err
	}
	return datum.Bool(f.IsNormalString(a[0].Str())), nil
}

// nameConcatOID is nameconcatoid: the name is cut so that the number fits.
func nameConcatOID(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	suffix := "_" + string(datum.OIDType.Append(nil, a[1], c.Format))
	name := a[0].Str()
	for len(name)+len(suffix) > datum.NameLen {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	return datum.Str(name + suffix), nil
}

var identifierEvals = evalMap{
	"parse_ident": parseIdent, "unistr": unistr, "nameconcatoid": nameConcatOID,
	"unicode_normalize_func": unicodeNormalize, "unicode_is_normalized": isNormalized,
}
