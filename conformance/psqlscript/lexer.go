package psqlscript

import "strings"

// lexer is what of the statement's beginning decides where it ends.
type lexer struct {
	parens int
	words  []string // the first identifiers, in lower case
	begins int      // open BEGIN ATOMIC and CASE of a function's body
}

// token moves over one token of a statement.
func (s *Scanner) token() {
	rest := s.script[s.pos:]
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "/*"):
		s.takeText(commentLength(rest))
	case c == '\'':
		s.takeText(stringLength(rest, '\'', s.NonStandardStrings))
	case c == '"':
		s.takeText(stringLength(rest, '"', false))
	case c == '$':
		s.takeText(dollarLength(rest))
	case isLetter(c) || c == '_' || c >= 0x80:
		s.word(rest)
	case isDigit(c):
		s.takeText(numberLength(rest))
	case c == ':':
		s.colon(rest)
	default:
		switch c {
		case '(':
			s.lex.parens++
		case ')':
			s.lex.parens = max(s.lex.parens-1, 0)
		}
		s.takeText(1)
	}
}

func (s *Scanner) takeText(n int) { s.take(n, s.script[s.pos:s.pos+n]) }

// colon takes a variable, or "::" and ":=" and the colon of a slice.
func (s *Scanner) colon(rest string) {
	if strings.HasPrefix(rest, "::") || strings.HasPrefix(rest, ":=") {
		s.takeText(2)
		return
	}
	if p, n := variable(rest); n > 0 {
		s.skip(n)
		s.buffer = append(s.buffer, p)
		return
	}
	s.takeText(1)
}

// word takes an identifier, and the string after it if it says which kind it is.
func (s *Scanner) word(rest string) {
	n := wordLength(rest)
	if n == 1 && len(rest) > 1 && rest[1] == '\'' && rest[0]|0x20 == 'e' {
		s.takeText(1 + stringLength(rest[1:], '\'', true))
		return
	}
	s.lex.identifier(strings.ToLower(rest[:n]))
	s.takeText(n)
}

// identifier follows the bodies of SQL functions, in which semicolons end
// nothing.
func (l *lexer) identifier(word string) {
	if len(l.words) < 4 {
		l.words = append(l.words, word)
	}
	if !l.createsFunction() || l.parens > 0 {
		return
	}
	switch {
	case word == "begin", word == "case" && l.begins > 0:
		l.begins++
	case word == "end" && l.begins > 0:
		l.begins--
	}
}

func (l *lexer) createsFunction() bool {
	w := l.words
	if len(w) < 2 || w[0] != "create" {
		return false
	}
	if w = w[1:]; len(w) > 2 && w[0] == "or" && w[1] == "replace" {
		w = w[2:]
	}
	return w[0] == "function" || w[0] == "procedure"
}

// commentLength is the length of the comment that s begins with; block comments
// nest.
func commentLength(s string) int {
	if strings.HasPrefix(s, "--") {
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			return i
		}
		return len(s)
	}
	depth := 0
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(s[i:], "*/"):
			depth--
			if i += 2; depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return len(s)
}

// stringLength is the length of the quoted text that s begins with. A doubled
// quote is seen as the end and the next beginning, which comes to the same.
func stringLength(s string, quote byte, escapes bool) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && escapes:
			i++
		case s[i] == quote:
			if escapes && i+1 < len(s) && s[i+1] == quote {
				i++ // E'...''...': what follows is still of its kind
				continue
			}
			return i + 1
		}
	}
	return len(s)
}

// dollarLength is the length of a dollar-quoted string, or of a parameter, or 1.
func dollarLength(s string) int {
	n := 1
	for n < len(s) && (isLetter(s[n]) || s[n] == '_' || s[n] >= 0x80 || n > 1 && isDigit(s[n])) {
		n++
	}
	if n >= len(s) || s[n] != '$' {
		return 1
	}
	tag := s[:n+1]
	if i := strings.Index(s[n+1:], tag); i >= 0 {
		return n + 1 + i + len(tag)
	}
	return len(s)
}

// wordLength is the length of an identifier, which may contain dollars.
func wordLength(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n]) || s[n] == '_' || s[n] == '$' || s[n] >= 0x80) {
		n++
	}
	return n
}

// numberLength is the length of a number; letters that touch it are part of it,
// as far as it matters here.
func numberLength(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
