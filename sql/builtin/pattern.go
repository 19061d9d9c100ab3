package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// likeResult distinguishes a mismatch from one that no later start of the text
// can repair, which keeps patterns with several % from taking exponential time
// (like_match.c).
type likeResult uint8

const (
	likeFalse likeResult = iota
	likeTrue
	likeAbort
)

func likeEndsWithEscape() error {
	return pgerr.New(pgerr.InvalidEscapeSequence, "LIKE pattern must not end with escape character")
}

// matchLike matches text t against pattern p; the escape character is \. runes
// tells that _ stands for a character rather than a byte.
func matchLike(t, p string, runes bool) (likeResult, error) {
	next := func(s string) string {
		if !runes {
			return s[1:]
		}
		_, n := utf8.DecodeRuneInString(s)
		return s[n:]
	}
	for t != "" && p != "" {
		switch p[0] {
		case '\\':
			if p = p[1:]; p == "" {
				return likeFalse, likeEndsWithEscape()
			}
			if p[0] != t[0] {
				return likeFalse, nil
			}
			t, p = t[1:], p[1:]
		case '%':
			for p != "" && (p[0] == '%' || p[0] == '_') {
				if p[0] == '_' {
					if t == "" {
						return likeAbort, nil
					}
					t = next(t)
				}
				p = p[1:]
			}
			if p == "" {
				return likeTrue, nil
			}
			first := p[0]
			if first == '\\' {
				if len(p) < 2 {
					return likeFalse, likeEndsWithEscape()
				}
				first = p[1]
			}
			for ; t != ""; t = next(t) {
				if t[0] != first {
					continue
				}
				if r, err := matchLike(t, p, runes); err != nil || r != likeFalse {
					return r, err
				}
			}
			return likeAbort, nil
		case '_':
			t, p = next(t), p[1:]
		default:
			if p[0] != t[0] {
				return likeFalse, nil
			}
			t, p = t[1:], p[1:]
		}
	}
	if t != "" {
		return likeFalse, nil
	}
	if p = strings.TrimLeft(p, "%"); p == "" {
		return likeTrue, nil
	}
	return likeAbort, nil
}

func like(not, fold, runes bool) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		t, p := a[0].Str(), a[1].Str()
		if err := c.Budget.Spend(int64(len(t)) * (1 + int64(len(p))/16) / 64); err != nil {
			return datum.Null, err
		}
		if fold {
			t, p = strings.Map(unicode.ToLower, t), strings.Map(unicode.ToLower, p)
		}
		r, err := matchLike(t, p, runes)
		if err != nil {
			return datum.Null, err
		}
		return datum.Bool((r == likeTrue) != not), nil
	}
}

// likeEscape rewrites a pattern from its own escape character to \.
func likeEscape(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	p, esc := a[0].Str(), a[1].Str()
	if esc == `\` {
		return a[0], nil
	}
	r, n := utf8.DecodeRuneInString(esc)
	if n != len(esc) {
		return datum.Null, invalidEscape()
	}
	var b strings.Builder
	after := false
	for _, c := range p {
		switch {
		case esc != "" && c == r && !after:
			b.WriteByte('\\')
			after = true
		case c == '\\':
			b.WriteByte('\\')
			if !after {
				b.WriteByte('\\')
			}
			after = false
		default:
			b.WriteRune(c)
			after = false
		}
	}
	return datum.Str(b.String()), nil
}

func invalidEscape() error {
	return pgerr.New(pgerr.InvalidEscapeSequence, "invalid escape string").
		WithHint("Escape string must be empty or one character.")
}

// similarToRegex turns a SQL regular expression (SIMILAR TO, SUBSTRING ...
// SIMILAR) into a POSIX one. Two escape-double-quotes mark the middle part.
func similarToRegex(p string, esc string) (string, error) {
	e, n := utf8.DecodeRuneInString(esc)
	if n != len(esc) {
		return "", invalidEscape()
	}
	var b strings.Builder
	b.WriteString("^(?:")
	after, class := false, false
	quotes := 0
	for _, c := range p {
		switch {
		case after:
			if c == '"' && !class {
				switch quotes {
				case 0:
					b.WriteString("){1,1}?(")
				case 1:
					b.WriteString("){1,1}(?:")
				default:
					return "", pgerr.New("2200C", "SQL regular expression may not contain more than two escape-double-quote separators")
				}
				quotes++
			} else {
				b.WriteByte('\\')
				b.WriteRune(c)
			}
			after = false
		case esc != "" && c == e:
			after = true
		case class:
			if c == '\\' {
				b.WriteByte('\\')
			}
			b.WriteRune(c)
			class = c != ']'
		case c == '[':
			b.WriteByte('[')
			class = true
		case c == '%':
			b.WriteString(".*")
		case c == '_':
			b.WriteByte('.')
		case c == '(':
			b.WriteString("(?:")
		case strings.ContainsRune(`\.^$`, c):
			b.WriteByte('\\')
			b.WriteRune(c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteString(")$")
	return b.String(), nil
}

// similarToEscape is similar_to_escape, and similar_escape, which differs in
// what a null escape means: the default, not null.
func similarToEscape(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if a[0].IsNull() {
		return datum.Null, nil
	}
	esc := `\`
	if len(a) == 2 && !a[1].IsNull() {
		esc = a[1].Str()
	}
	r, err := similarToRegex(a[0].Str(), esc)
	return datum.Str(r), err
}

var patternEvals = evalMap{
	"textlike": like(false, false, true), "textnlike": like(true, false, true),
	"namelike": like(false, false, true), "namenlike": like(true, false, true),
	"texticlike": like(false, true, true), "texticnlike": like(true, true, true),
	"nameiclike": like(false, true, true), "nameicnlike": like(true, true, true),
	"bytealike": like(false, false, false), "byteanlike": like(true, false, false),
	"like_escape": likeEscape, "like_escape_bytea": likeEscape,
	"similar_to_escape_1": similarToEscape, "similar_to_escape_2": similarToEscape, "similar_escape": similarToEscape,
}
