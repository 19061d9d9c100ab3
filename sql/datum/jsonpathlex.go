package datum

import (
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// pathToken is one token of a path expression. kind is the character itself for
// special ones, else one of the letters below.
type pathToken struct {
	kind byte
	text string // unescaped, or the operator or number as written
	raw  string // what messages show: where PostgreSQL's scanner stands then
}

const (
	pathEOF    byte = 0
	pathIdent  byte = 'i' // also keywords
	pathQuoted byte = 'q'
	pathVar    byte = 'v'
	pathInt    byte = '1'
	pathNumber byte = 'n'
	pathOp     byte = 'o' // an operator of two characters: && || ** <= >= == !=
)

const pathSpecial = `?%$.[]{}()|&!=<>@#,*:-+/`

// isPathOther is what names consist of.
func isPathOther(c byte) bool {
	return strings.IndexByte(pathSpecial, c) < 0 && c != '\\' && c != '"' && !isPathBlank(c)
}

func isPathBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// pathLexer cuts a path expression into tokens (jsonpath_scan.l).
type pathLexer struct {
	s   string
	pos int
}

func errPath(message, near string) error {
	if near == "" {
		return pgerr.New(pgerr.SyntaxError, "%s at end of jsonpath input", message)
	}
	return pgerr.New(pgerr.SyntaxError, "%s at or near \"%s\" of jsonpath input", message, near)
}

func (l *pathLexer) next() (pathToken, error) {
	if err := l.blanks(); err != nil {
		return pathToken{}, err
	}
	if l.pos >= len(l.s) {
		return pathToken{}, nil
	}
	s := l.s[l.pos:]
	switch c := s[0]; {
	case c == '"':
		return l.quoted(pathQuoted, 1)
	case c == '$' && len(s) > 1 && s[1] == '"':
		return l.quoted(pathVar, 2)
	case c == '$' && len(s) > 1 && isPathOther(s[1]):
		n := 1
		for n < len(s) && isPathOther(s[n]) {
			n++
		}
		l.pos += n
		return pathToken{pathVar, s[1:n], s[:n]}, nil
	case c >= '0' && c <= '9', c == '.' && len(s) > 1 && isDigit(s[1]):
		return l.number()
	case isPathOther(c), c == '\\':
		return l.name()
	}
	for _, op := range [...]string{"&&", "||", "**", "<=", ">=", "==", "!=", "<>"} {
		if strings.HasPrefix(s, op) {
			l.pos += 2
			text := op
			if op == "<>" {
				text = "!="
			}
			return pathToken{pathOp, text, op}, nil
		}
	}
	l.pos++
	return pathToken{s[0], s[:1], s[:1]}, nil
}

// blanks passes over white space and comments.
func (l *pathLexer) blanks() error {
	for l.pos < len(l.s) {
		switch {
		case isPathBlank(l.s[l.pos]):
			l.pos++
		case strings.HasPrefix(l.s[l.pos:], "/*"):
			end := strings.Index(l.s[l.pos+2:], "*/")
			if end < 0 {
				return errPath("unexpected end of comment", "")
			}
			l.pos += end + 4
		default:
			return nil
		}
	}
	return nil
}

func (l *pathLexer) number() (pathToken, error) {
	s := l.s[l.pos:]
	n := 0
	digits := func() {
		for n < len(s) && isDigit(s[n]) {
			n++
		}
	}
	kind := pathInt
	if s[0] == '0' {
		n = 1
	} else {
		digits()
	}
	if n < len(s) && s[n] == '.' {
		kind = pathNumber
		n++
		digits()
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		k := n + 1
		signed := k < len(s) && (s[k] == '+' || s[k] == '-')
		if signed {
			k++
		}
		switch {
		case k < len(s) && isDigit(s[k]):
			kind, n = pathNumber, k
			digits()
		case signed:
			return pathToken{}, errPath("invalid numeric literal", s[:k])
		}
	}
	if n < len(s) && isPathOther(s[n]) {
		_, w := utf8.DecodeRuneInString(s[n:])
		return pathToken{}, errPath("trailing junk after numeric literal", s[:n+w])
	}
	l.pos += n
	return pathToken{kind, s[:n], s[:n]}, nil
}

// name reads an unquoted name, in which escapes may stand.
func (l *pathLexer) name() (pathToken, error) {
	var b []byte
	for l.pos < len(l.s) {
		c := l.s[l.pos]
		if c == '\\' {
			var err error
			if b, err = l.escape(b); err != nil {
				return pathToken{}, err
			}
			continue
		}
		if !isPathOther(c) {
			break
		}
		b = append(b, c)
		l.pos++
	}
	raw := ""
	if l.pos < len(l.s) && isPathBlank(l.s[l.pos]) {
		raw = l.s[l.pos : l.pos+1]
	}
	return pathToken{pathIdent, string(b), raw}, nil
}

func (l *pathLexer) quoted(kind byte, skip int) (pathToken, error) {
	l.pos += skip
	var b []byte
	for l.pos < len(l.s) {
		switch c := l.s[l.pos]; c {
		case '"':
			l.pos++
			return pathToken{kind, string(b), `"`}, nil
		case '\\':
			var err error
			if b, err = l.escape(b); err != nil {
				return pathToken{}, err
			}
		default:
			b = append(b, c)
			l.pos++
		}
	}
	return pathToken{}, errPath("unexpected end of quoted string", "")
}

// escape reads a backslash and what belongs to it.
func (l *pathLexer) escape(b []byte) ([]byte, error) {
	l.pos++
	if l.pos >= len(l.s) {
		return nil, errPath("unexpected end after backslash", "")
	}
	c := l.s[l.pos]
	l.pos++
	switch c {
	case 'b':
		return append(b, '\b'), nil
	case 'f':
		return append(b, '\f'), nil
	case 'n':
		return append(b, '\n'), nil
	case 'r':
		return append(b, '\r'), nil
	case 't':
		return append(b, '\t'), nil
	case 'v':
		return append(b, '\v'), nil
	case 'x':
		v, ok := l.hex(2, 2)
		if !ok {
			return nil, errPath("invalid hex character sequence", `\x`)
		}
		return appendPathRune(b, v)
	case 'u':
		return l.unicode(b)
	}
	_, w := utf8.DecodeRuneInString(l.s[l.pos-1:])
	l.pos += w - 1
	return append(b, l.s[l.pos-w:l.pos]...), nil
}

// hex reads between least and most hexadecimal digits.
func (l *pathLexer) hex(least, most int) (v rune, ok bool) {
	n := 0
	for n < most && l.pos < len(l.s) {
		d := strings.IndexByte("0123456789abcdef", l.s[l.pos]|0x20)
		if d < 0 {
			break
		}
		v = v<<4 | rune(d)
		l.pos++
		n++
	}
	return v, n >= least
}

// unicode reads what follows \u: four digits, or up to six in braces; a pair of
// surrogates is one character.
func (l *pathLexer) unicode(b []byte) ([]byte, error) {
	one := func() (rune, bool) {
		if l.pos < len(l.s) && l.s[l.pos] == '{' {
			l.pos++
			v, ok := l.hex(1, 6)
			if !ok || l.pos >= len(l.s) || l.s[l.pos] != '}' {
				return 0, false
			}
			l.pos++
			return v, true
		}
		return l.hex(4, 4)
	}
	v, ok := one()
	if !ok {
		return nil, errPath("invalid Unicode escape sequence", `\u`)
	}
	if v >= 0xd800 && v < 0xdc00 {
		if !strings.HasPrefix(l.s[l.pos:], `\u`) {
			return nil, badSurrogate("Unicode low surrogate must follow a high surrogate.")
		}
		l.pos += 2
		low, ok := one()
		if !ok || low < 0xdc00 || low > 0xdfff {
			return nil, badSurrogate("Unicode low surrogate must follow a high surrogate.")
		}
		v = 0x10000 + (v&0x3ff)<<10 + low&0x3ff
	} else if v >= 0xdc00 && v <= 0xdfff {
		return nil, badSurrogate("Unicode low surrogate must follow a high surrogate.")
	}
	return appendPathRune(b, v)
}

func badSurrogate(detail string) error {
	return pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type %s", "jsonpath").WithDetail("%s", detail)
}

func appendPathRune(b []byte, v rune) ([]byte, error) {
	if v == 0 {
		return nil, pgerr.New(pgerr.UntranslatableCharacter, "unsupported Unicode escape sequence").
			WithDetail("\\u0000 cannot be converted to text.")
	}
	if v > utf8.MaxRune {
		return nil, pgerr.New(pgerr.SyntaxError, "could not convert Unicode to server encoding")
	}
	return utf8.AppendRune(b, v), nil
}
