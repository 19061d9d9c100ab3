package psqlscript

import "strings"

// Text is a piece of a script in which variables are still to be replaced.
type Text []part

// part is literal text, or the name of a variable and how it is quoted.
type part struct {
	literal string
	name    string
	quote   byte // 0, ' , " or ? for :{?name}
}

func (t Text) empty() bool {
	return strings.TrimSpace(t.raw()) == ""
}

// raw is the text as it stands in the script.
func (t Text) raw() string { return t.Expand(func(string) (string, bool) { return "", false }) }

// Expand replaces the variables that value knows; the others stay as they were
// written. A quoted value has its quotes doubled.
func (t Text) Expand(value func(name string) (string, bool)) string {
	var b strings.Builder
	for _, p := range t {
		if p.name == "" {
			b.WriteString(p.literal)
			continue
		}
		v, ok := value(p.name)
		switch {
		case p.quote == '?' && ok:
			b.WriteString("TRUE")
		case p.quote == '?':
			b.WriteString("FALSE")
		case !ok:
			b.WriteString(p.literal)
		case p.quote == 0:
			b.WriteString(v)
		default:
			b.WriteString(quoted(v, p.quote))
		}
	}
	return b.String()
}

func quoted(v string, quote byte) string {
	q := string(quote)
	s := q + strings.ReplaceAll(v, q, q+q) + q
	if quote == '\'' && strings.Contains(v, `\`) {
		return " E" + strings.ReplaceAll(s, `\`, `\\`)
	}
	return s
}

func (t Text) add(literal string) Text {
	if n := len(t); n > 0 && t[n-1].name == "" {
		t[n-1].literal += literal
		return t
	}
	return append(t, part{literal: literal})
}

// trimLeft drops blanks before the first thing that is none.
func (t Text) trimLeft() Text {
	if len(t) > 0 && t[0].name == "" {
		t[0].literal = strings.TrimLeft(t[0].literal, " \t\r\n\f\v")
		if t[0].literal == "" {
			return t[1:]
		}
	}
	return t
}

// variable reads a reference at the beginning of s, which begins with a colon;
// n is its length, 0 if it is none.
func variable(s string) (p part, n int) {
	if len(s) < 2 {
		return part{}, 0
	}
	switch q := s[1]; q {
	case '\'', '"':
		end := 2 + nameLength(s[2:])
		if end > 2 && end < len(s) && s[end] == q {
			return part{literal: s[:end+1], name: s[2:end], quote: q}, end + 1
		}
	case '{':
		if len(s) > 3 && s[2] == '?' {
			end := 3 + nameLength(s[3:])
			if end > 3 && end < len(s) && s[end] == '}' {
				return part{literal: s[:end+1], name: s[3:end], quote: '?'}, end + 1
			}
		}
	default:
		if end := 1 + nameLength(s[1:]); end > 1 {
			return part{literal: s[:end], name: s[1:end]}, end
		}
	}
	return part{}, 0
}

// nameLength is how much of s is the name of a variable.
func nameLength(s string) int {
	n := 0
	for n < len(s) && (s[n] >= 0x80 || isLetter(s[n]) || isDigit(s[n]) || s[n] == '_') {
		n++
	}
	return n
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
