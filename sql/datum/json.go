package datum

import (
	"strconv"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// maxJSONDepth bounds nesting: PostgreSQL's bound is its stack, which is no
// constant.
const maxJSONDepth = 6000

// jsonParser reads JSON text (RFC 8259) and tells a builder what it meets; with
// no builder it only checks.
type jsonParser struct {
	s     string
	pos   int
	depth int
	b     *JSONBBuilder
	buf   []byte // the string being read, without escapes
}

// ValidateJSON checks the text of a json value (22P02).
func ValidateJSON(s string) error {
	if err := CheckText(s); err != nil {
		return err
	}
	p := jsonParser{s: s}
	return p.parse()
}

// ParseJSONB reads JSON text as jsonb.
func ParseJSONB(s string) (Datum, error) {
	if err := CheckText(s); err != nil {
		return Null, err
	}
	var b JSONBBuilder
	p := jsonParser{s: s, b: &b}
	if err := p.parse(); err != nil {
		return Null, err
	}
	return b.Done(), nil
}

func (p *jsonParser) parse() error {
	if err := p.value(); err != nil {
		return err
	}
	p.space()
	if p.pos < len(p.s) {
		return p.expected("end of input")
	}
	return nil
}

func (p *jsonParser) space() {
	for p.pos < len(p.s) {
		switch p.s[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// token is the end of the token that starts at pos; ok is false if it is none.
func (p *jsonParser) token() (end int, ok bool) {
	c := p.s[p.pos]
	switch c {
	case '{', '}', '[', ']', ',', ':':
		return p.pos + 1, true
	case '"':
		for i := p.pos + 1; i < len(p.s); i++ {
			switch p.s[i] {
			case '\\':
				i++
			case '"':
				return i + 1, true
			}
		}
		return len(p.s), false
	}
	word := func(c byte) bool { return isAlnum(c) || c == '_' || c >= 0x80 }
	end = p.pos
	if c == '-' || isDigit(c) {
		end, ok = p.number()
		for end < len(p.s) && word(p.s[end]) {
			ok = false
			end++
		}
		return end, ok
	}
	for end < len(p.s) && word(p.s[end]) {
		end++
	}
	if end == p.pos {
		return end + 1, false
	}
	switch p.s[p.pos:end] {
	case "true", "false", "null":
		return end, true
	}
	return end, false
}

// number is the end of the number that starts at pos, or where it goes wrong.
func (p *jsonParser) number() (end int, ok bool) {
	i := p.pos
	if i < len(p.s) && p.s[i] == '-' {
		i++
	}
	digits := func() bool {
		start := i
		for i < len(p.s) && isDigit(p.s[i]) {
			i++
		}
		return i > start
	}
	switch {
	case i < len(p.s) && p.s[i] == '0':
		i++
	case !digits():
		return i, false
	}
	if i < len(p.s) && p.s[i] == '.' {
		if i++; !digits() {
			return i, false
		}
	}
	if i < len(p.s) && p.s[i]|0x20 == 'e' {
		i++
		if i < len(p.s) && (p.s[i] == '+' || p.s[i] == '-') {
			i++
		}
		if !digits() {
			return i, false
		}
	}
	return i, true
}

func (p *jsonParser) value() error {
	p.space()
	if p.pos >= len(p.s) {
		return p.fail("The input string ended unexpectedly.", p.pos)
	}
	switch c := p.s[p.pos]; c {
	case '{':
		return p.nested((*jsonParser).object)
	case '[':
		return p.nested((*jsonParser).array)
	case '"':
		s, err := p.string()
		if err == nil && p.b != nil {
			p.b.String(s)
		}
		return err
	case '}', ']', ',', ':':
		return p.expected("JSON value")
	}
	end, ok := p.token()
	if !ok {
		return p.badToken(end)
	}
	tok := p.s[p.pos:end]
	if p.b != nil {
		switch tok[0] {
		case 't', 'f':
			p.b.Bool(tok[0] == 't')
		case 'n':
			p.b.Null()
		default:
			d, err := ParseNumeric(tok)
			if err != nil {
				return err
			}
			p.b.Number(d)
		}
	}
	p.pos = end
	return nil
}

func (p *jsonParser) nested(read func(*jsonParser) error) error {
	if p.depth++; p.depth > maxJSONDepth {
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
	}
	p.pos++
	err := read(p)
	p.depth--
	return err
}

// next skips white space and returns the next byte, 0 at the end.
func (p *jsonParser) next() byte {
	p.space()
	if p.pos < len(p.s) {
		return p.s[p.pos]
	}
	return 0
}

func (p *jsonParser) array() error {
	if p.b != nil {
		p.b.BeginArray()
	}
	if p.next() == ']' {
		p.pos++
	} else {
		for {
			if err := p.value(); err != nil {
				return err
			}
			c := p.next()
			if c == ']' {
				p.pos++
				break
			}
			if c != ',' {
				return p.expected(`"," or "]"`)
			}
			p.pos++
		}
	}
	if p.b != nil {
		p.b.EndArray()
	}
	return nil
}

func (p *jsonParser) object() error {
	if p.b != nil {
		p.b.BeginObject()
	}
	if p.next() == '}' {
		p.pos++
	} else {
		for what := `string or "}"`; ; what = "string" {
			if p.next() != '"' {
				return p.expected(what)
			}
			key, err := p.string()
			if err != nil {
				return err
			}
			if p.b != nil {
				p.b.Key(key)
			}
			if p.next() != ':' {
				return p.expected(`":"`)
			}
			p.pos++
			if err := p.value(); err != nil {
				return err
			}
			c := p.next()
			if c == '}' {
				p.pos++
				break
			}
			if c != ',' {
				return p.expected(`"," or "}"`)
			}
			p.pos++
		}
	}
	if p.b != nil {
		p.b.EndObject()
	}
	return nil
}

// string reads a string. The result is valid until the next one.
func (p *jsonParser) string() (string, error) {
	start := p.pos
	i := p.pos + 1
	for i < len(p.s) && p.s[i] != '"' && p.s[i] != '\\' && p.s[i] >= ' ' {
		i++
	}
	if i < len(p.s) && p.s[i] == '"' {
		p.pos = i + 1
		return p.s[start+1 : i], nil
	}
	p.buf = append(p.buf[:0], p.s[start+1:i]...)
	for {
		if i >= len(p.s) {
			return "", p.badToken(len(p.s))
		}
		switch c := p.s[i]; {
		case c == '"':
			p.pos = i + 1
			return string(p.buf), nil
		case c < ' ':
			return "", p.fail("Character with value 0x"+string(hexDigits[c>>4])+string(hexDigits[c&15])+" must be escaped.", i)
		case c == '\\':
			var err error
			if i, err = p.escape(i + 1); err != nil {
				return "", err
			}
		default:
			p.buf = append(p.buf, c)
			i++
		}
	}
}

// escape reads what follows a backslash.
func (p *jsonParser) escape(i int) (int, error) {
	if i >= len(p.s) {
		return 0, p.badToken(len(p.s))
	}
	c := p.s[i]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return p.unicode(i + 1)
	default:
		_, n := utf8.DecodeRuneInString(p.s[i:])
		return 0, p.fail(`Escape sequence "\`+p.s[i:i+n]+`" is invalid.`, i+n)
	}
	p.buf = append(p.buf, c)
	return i + 1, nil
}

func (p *jsonParser) unicode(i int) (int, error) {
	r, err := p.hex4(i)
	if err != nil {
		return 0, err
	}
	i += 4
	if p.b == nil {
		return i, nil // json keeps escapes as they are
	}
	switch {
	case r == 0:
		e := pgerr.New(pgerr.UntranslatableCharacter, "unsupported Unicode escape sequence").
			WithDetail(`\u0000 cannot be converted to text.`)
		return 0, e.AddContext(p.context(i))
	case r >= 0xdc00 && r < 0xe000:
		return 0, p.fail("Unicode low surrogate must follow a high surrogate.", i)
	case r >= 0xd800 && r < 0xdc00:
		if i+2 > len(p.s) || p.s[i:i+2] != `\u` {
			return 0, p.fail("Unicode low surrogate must follow a high surrogate.", i)
		}
		low, err := p.hex4(i + 2)
		if err != nil {
			return 0, err
		}
		i += 6
		if low >= 0xd800 && low < 0xdc00 {
			return 0, p.fail("Unicode high surrogate must not follow a high surrogate.", i)
		}
		if low < 0xdc00 || low >= 0xe000 {
			return 0, p.fail("Unicode low surrogate must follow a high surrogate.", i)
		}
		r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
	}
	p.buf = utf8.AppendRune(p.buf, r)
	return i, nil
}

func (p *jsonParser) hex4(i int) (rune, error) {
	var r rune
	for k := i; k < i+4; k++ {
		if k >= len(p.s) {
			return 0, p.badToken(len(p.s))
		}
		v, ok := hexValue(p.s[k])
		if !ok {
			return 0, p.fail(`"\u" must be followed by four hexadecimal digits.`, k+1)
		}
		r = r<<4 | rune(v)
	}
	return r, nil
}

func (p *jsonParser) badToken(end int) error {
	return p.fail(`Token "`+p.s[p.pos:end]+`" is invalid.`, end)
}

// expected reports that something else stands at pos.
func (p *jsonParser) expected(what string) error {
	if p.pos >= len(p.s) {
		return p.fail("The input string ended unexpectedly.", p.pos)
	}
	end, ok := p.token()
	if !ok {
		return p.badToken(end)
	}
	return p.fail("Expected "+what+`, but found "`+p.s[p.pos:end]+`".`, end)
}

func (p *jsonParser) fail(detail string, end int) error {
	e := pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type json")
	e.Detail = detail
	return e.AddContext(p.context(end))
}

// context shows the line up to end, less than fifty bytes of it.
func (p *jsonParser) context(end int) string {
	const most = 49
	line, start := 1, 0
	for i := range end {
		if p.s[i] == '\n' {
			line, start = line+1, i+1
		}
	}
	prefix := ""
	if end-start > most {
		start = end - most
		for start < end && !utf8.RuneStart(p.s[start]) {
			start++
		}
		prefix = "..."
	}
	suffix := ""
	if end < len(p.s) && p.s[end] != '\n' && p.s[end] != '\r' {
		suffix = "..."
	}
	return "JSON data, line " + strconv.Itoa(line) + ": " + prefix + p.s[start:end] + suffix
}

// AppendJSONString writes a string as a JSON token, as to_json does.
func AppendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}

func parseJSON(s string, _ int32, _ *Format) (Datum, error) {
	if err := ValidateJSON(s); err != nil {
		return Null, err
	}
	return Str(s), nil
}

func parseBinaryJSON(b []byte, _ int32) (Datum, error) {
	d := Bytes(b)
	return d, ValidateJSON(d.Str())
}

func parseJSONB(s string, _ int32, _ *Format) (Datum, error) { return ParseJSONB(s) }

func parseBinaryJSONB(b []byte, _ int32) (Datum, error) {
	if len(b) == 0 {
		return Null, errShort()
	}
	if b[0] != 1 {
		return Null, pgerr.New(pgerr.InternalError, "unsupported jsonb version number %d", b[0])
	}
	return ParseJSONB(string(b[1:]))
}

func appendJSONB(dst []byte, d Datum, _ *Format) []byte { return appendNode(dst, d.Bytes()) }

func appendBinaryJSONB(dst []byte, d Datum) []byte {
	return appendNode(append(dst, 1), d.Bytes())
}
