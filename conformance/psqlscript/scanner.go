package psqlscript

import (
	"strings"
)

// Scanner reads a script from its beginning to its end.
type Scanner struct {
	// NonStandardStrings tells that backslashes escape in plain strings, which
	// is so while standard_conforming_strings is off.
	NonStandardStrings bool

	script string
	pos    int
	line   int // of pos, from 1

	buffer Text // the statement as far as it is read
	start  int  // its first line
	lex    lexer
}

// Item is what a script asks for next: a statement or a command.
type Item struct {
	Line int // where it begins in the script, from 1
	// SQL is the statement without its semicolon. For a command it is nil,
	// unless the command sends the statement before it (\g, \gset, \gexec ...).
	SQL Text
	// Command is the name of a backslash command without the backslash, Args
	// the rest of its line.
	Command string
	Args    Text
}

// New returns a scanner of a script.
func New(script string) *Scanner { return &Scanner{script: script, line: 1} }

// sends are the commands that send what was read before them.
var sends = map[string]bool{
	"g": true, "gx": true, "gset": true, "gexec": true, "gdesc": true, "crosstabview": true, "watch": true, "bind": true,
}

// Next returns the next item, and false at the end of the script. A statement
// without a semicolon at the end is one.
func (s *Scanner) Next() (Item, bool) {
	for s.pos < len(s.script) {
		if s.buffer.empty() {
			s.buffer = nil
			s.skipBlank()
			s.start = s.line
			if s.pos >= len(s.script) {
				break
			}
		}
		switch c := s.script[s.pos]; {
		case c == ';' && s.lex.parens == 0 && s.lex.begins == 0:
			s.pos++
			if it, ok := s.statement(); ok {
				return it, true
			}
		case c == '\\' && strings.HasPrefix(s.script[s.pos:], `\;`):
			s.take(2, ";")
		case c == '\\':
			return s.command(), true
		default:
			s.token()
		}
	}
	return s.statement()
}

// statement ends what was read as a statement; false if that is nothing.
func (s *Scanner) statement() (Item, bool) {
	it := Item{Line: s.start, SQL: s.buffer.trimLeft()}
	s.buffer, s.lex = nil, lexer{}
	return it, !it.SQL.empty()
}

// command reads a backslash command: its name ends at a blank or at the next
// backslash, its arguments at the end of the line or at "\\".
func (s *Scanner) command() Item {
	it := Item{Line: s.line}
	rest := s.script[s.pos+1:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	n := strings.IndexAny(rest, " \t\r\\")
	if n < 0 {
		n = len(rest)
	}
	it.Command = rest[:n]
	args := rest[n:]
	if i := strings.Index(args, `\\`); i >= 0 {
		n += i + 2
		args = args[:i]
	} else {
		n += len(args)
	}
	s.pos += 1 + n
	it.Args = argumentText(strings.TrimSpace(args))
	switch {
	case sends[it.Command]:
		it.Line, it.SQL = s.start, s.buffer.trimLeft()
		s.buffer, s.lex = nil, lexer{}
	case it.Command == "r" || it.Command == "reset":
		s.buffer, s.lex = nil, lexer{}
	}
	return it
}

// argumentText finds the variables of a command's arguments, outside of single
// quotes.
func argumentText(s string) Text {
	var t Text
	for len(s) > 0 {
		switch s[0] {
		case ':':
			if p, n := variable(s); n > 0 {
				t, s = append(t, p), s[n:]
				continue
			}
		case '\'':
			if i := strings.IndexByte(s[1:], '\''); i >= 0 {
				t, s = t.add(s[:i+2]), s[i+2:]
				continue
			}
		}
		t, s = t.add(s[:1]), s[1:]
	}
	return t
}

// CopyData reads the data of a COPY FROM STDIN: the lines after the current
// one up to one that is "\." or to the end.
func (s *Scanner) CopyData() string {
	if i := strings.IndexByte(s.script[s.pos:], '\n'); i >= 0 {
		s.skip(i + 1)
	} else {
		s.pos = len(s.script)
	}
	var b strings.Builder
	for s.pos < len(s.script) {
		line := s.script[s.pos:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		s.skip(len(line))
		if strings.TrimRight(line, "\r\n") == `\.` {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// skip moves on over text that belongs to no statement.
func (s *Scanner) skip(n int) {
	s.line += strings.Count(s.script[s.pos:s.pos+n], "\n")
	s.pos += n
}

// take moves on by n bytes, for which text goes into the statement.
func (s *Scanner) take(n int, text string) {
	s.skip(n)
	s.buffer = s.buffer.add(text)
}

// skipBlank passes blanks and comments between statements.
func (s *Scanner) skipBlank() {
	for s.pos < len(s.script) {
		rest := s.script[s.pos:]
		switch {
		case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0:
			s.skip(1)
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "/*"):
			s.skip(commentLength(rest))
		default:
			return
		}
	}
}
