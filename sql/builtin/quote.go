package builtin

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// QuoteIdent writes an identifier as SQL needs it: in quotes unless it is lower
// case and no keyword (quote_identifier in ruleutils.c).
func QuoteIdent(s string) string {
	safe := s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] == '_')
	for i := 0; safe && i < len(s); i++ {
		c := s[i]
		safe = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
	}
	if safe && !reservedWord(s) {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// QuoteLiteral writes a string constant; backslashes make it an E” string.
func QuoteLiteral(s string) string {
	q := `'` + strings.ReplaceAll(s, `'`, `''`) + `'`
	if strings.Contains(s, `\`) {
		return `E` + strings.ReplaceAll(q, `\`, `\\`)
	}
	return q
}

// bindQuote implements quote_literal and quote_nullable of any type.
func bindQuote(args []datum.Type, _ datum.Type) (Eval, error) {
	t := args[0].Root().Desc
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		if a[0].IsNull() {
			return datum.Str("NULL"), nil
		}
		return datum.Str(QuoteLiteral(string(appendCast(nil, t, a[0], c.Format)))), nil
	}, nil
}

// formatSpec is one conversion of format(): %[n$][-][width]type.
type formatSpec struct {
	arg      int // position given by n$, from 1; 0 = the next
	left     bool
	width    int
	widthArg int // * : -1 = the next argument, else position; 0 = none
	kind     byte
}

func formatError(format string, args ...any) error {
	return pgerr.New(pgerr.InvalidParameterValue, format, args...)
}

// parseSpec reads a specifier behind its %; it returns what follows.
func parseSpec(s string) (spec formatSpec, rest string, err error) {
	unterminated := formatError("unterminated format() type specifier").(*pgerr.Error).WithHint("For a single \"%%\" use \"%%%%\".")
	number := func() (n int, ok bool, err error) {
		i := 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			if n = n*10 + int(s[i]-'0'); n > 1<<31-1 {
				return 0, false, formatError("number is out of range")
			}
			i++
		}
		s = s[i:]
		return n, i > 0, nil
	}
	n, ok, err := number()
	if err != nil {
		return spec, s, err
	}
	if s == "" {
		return spec, s, unterminated
	}
	if ok {
		if s[0] != '$' {
			spec.width = n
			return finishSpec(spec, s)
		}
		if n == 0 {
			return spec, s, formatError("format specifies argument 0, but arguments are numbered from 1")
		}
		spec.arg, s = n, s[1:]
	}
	for s != "" && s[0] == '-' {
		spec.left, s = true, s[1:]
	}
	if s == "" {
		return spec, s, unterminated
	}
	if s[0] == '*' {
		s = s[1:]
		if n, ok, err = number(); err != nil {
			return spec, s, err
		}
		if spec.widthArg = -1; ok {
			if s == "" || s[0] != '$' {
				return spec, s, formatError("width argument position must be ended by \"$\"")
			}
			if n == 0 {
				return spec, s, formatError("format specifies argument 0, but arguments are numbered from 1")
			}
			spec.widthArg, s = n, s[1:]
		}
	} else if spec.width, _, err = number(); err != nil {
		return spec, s, err
	}
	if s == "" {
		return spec, s, unterminated
	}
	return finishSpec(spec, s)
}

func finishSpec(spec formatSpec, s string) (formatSpec, string, error) {
	spec.kind = s[0]
	if !strings.ContainsRune("sIL", rune(s[0])) {
		_, n := utf8.DecodeRuneInString(s)
		return spec, s, formatError("unrecognized format() type specifier \"%s\"", s[:n]).(*pgerr.Error).WithHint("For a single \"%%\" use \"%%%%\".")
	}
	return spec, s[1:], nil
}

// bindFormat implements format().
func bindFormat(args []datum.Type, _ datum.Type) (Eval, error) {
	types := descsOf(args)
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		if a[0].IsNull() {
			return datum.Null, nil
		}
		f := formatter{c: c, types: types, args: a, next: 1}
		if err := f.run(a[0].Str()); err != nil {
			return datum.Null, err
		}
		return datum.Bytes(f.out), nil
	}, nil
}

type formatter struct {
	c     *Ctx
	types []*datum.Desc
	args  []datum.Datum // args[0] is the format
	next  int
	out   []byte
}

func (f *formatter) run(s string) error {
	for s != "" {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			break
		}
		f.out = append(f.out, s[:i]...)
		if s = s[i+1:]; s == "" {
			return formatError("unterminated format() type specifier").(*pgerr.Error).WithHint("For a single \"%%\" use \"%%%%\".")
		}
		if s[0] == '%' {
			f.out, s = append(f.out, '%'), s[1:]
			continue
		}
		spec, rest, err := parseSpec(s)
		if err != nil {
			return err
		}
		if err := f.one(spec); err != nil {
			return err
		}
		s = rest
	}
	f.out = append(f.out, s...)
	return nil
}

func (f *formatter) one(spec formatSpec) error {
	if spec.widthArg != 0 {
		w, err := f.width(spec.widthArg)
		if err != nil {
			return err
		}
		if spec.width = w; w < 0 {
			spec.left, spec.width = true, -w
		}
	}
	i, err := f.position(spec.arg)
	if err != nil {
		return err
	}
	if err := spendBytes(f.c, int64(spec.width)); err != nil {
		return err
	}
	v := f.args[i]
	var s string
	switch {
	case v.IsNull() && spec.kind == 'I':
		return pgerr.New(pgerr.NullValueNotAllowed, "null values cannot be formatted as an SQL identifier")
	case v.IsNull() && spec.kind == 'L':
		s = "NULL"
	case v.IsNull():
	default:
		s = string(appendOut(nil, f.types[i], v, f.c.Format))
		switch spec.kind {
		case 'I':
			s = QuoteIdent(s)
		case 'L':
			s = QuoteLiteral(s)
		}
	}
	fill := max(spec.width-utf8.RuneCountInString(s), 0)
	if !spec.left {
		f.out = append(f.out, strings.Repeat(" ", fill)...)
	}
	f.out = append(f.out, s...)
	if spec.left {
		f.out = append(f.out, strings.Repeat(" ", fill)...)
	}
	return nil
}

// position takes the argument with a number from 1, or the next one.
func (f *formatter) position(n int) (int, error) {
	if n <= 0 {
		n = f.next
	}
	f.next = n + 1
	if n >= len(f.args) {
		return 0, formatError("too few arguments for format()")
	}
	return n, nil
}

func (f *formatter) width(n int) (int, error) {
	i, err := f.position(n)
	if err != nil {
		return 0, err
	}
	v := f.args[i]
	if v.IsNull() {
		return 0, nil
	}
	w, err := strconv.Atoi(string(appendOut(nil, f.types[i], v, f.c.Format)))
	if err != nil {
		return 0, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", "integer",
			appendOut(nil, f.types[i], v, f.c.Format))
	}
	return w, nil
}

var quoteEvals = evalMap{
	"quote_ident": text1(QuoteIdent), "quote_literal": text1(QuoteLiteral),
	"quote_nullable": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		if a[0].IsNull() {
			return datum.Str("NULL"), nil
		}
		return datum.Str(QuoteLiteral(a[0].Str())), nil
	},
}

var quoteBinds = bindMap{
	"quote_literal(anyelement)": bindQuote, "quote_nullable(anyelement)": bindQuote,
	"text_format": bindFormat, "text_format_nv": bindFormat,
}
