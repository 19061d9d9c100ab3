package plpgsql

import (
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// token is one token of PostgreSQL's own scanner.
type token struct {
	kind       pg.Token
	start, end int
	// word is an identifier or keyword: folded to lower case unless it was quoted.
	word   string
	quoted bool
}

// end of input is a token too.
const eof = pg.Token_NUL

// The tokens that the scanner names by their character.
const (
	tokParenOpen    = pg.Token_ASCII_40
	tokParenClose   = pg.Token_ASCII_41
	tokComma        = pg.Token_ASCII_44
	tokDot          = pg.Token_ASCII_46
	tokColon        = pg.Token_ASCII_58
	tokSemicolon    = pg.Token_ASCII_59
	tokEquals       = pg.Token_ASCII_61
	tokBracketOpen  = pg.Token_ASCII_91
	tokBracketClose = pg.Token_ASCII_93
	tokPercent      = pg.Token_ASCII_37
)

// tokenize scans a function body; comments are left out. The last token is eof.
func tokenize(src string) ([]token, error) {
	res, err := pg.Scan(src)
	if err != nil {
		return nil, err
	}
	out := make([]token, 0, len(res.Tokens)+1)
	for _, t := range res.Tokens {
		if t.Token == pg.Token_SQL_COMMENT || t.Token == pg.Token_C_COMMENT {
			continue
		}
		k := token{kind: t.Token, start: int(t.Start), end: int(t.End)}
		text := src[k.start:k.end]
		switch {
		case t.KeywordKind != pg.KeywordKind_NO_KEYWORD:
			k.word = foldIdent(text)
		case t.Token == pg.Token_IDENT && strings.HasPrefix(text, `"`):
			k.word, k.quoted = clipIdent(strings.ReplaceAll(text[1:len(text)-1], `""`, `"`)), true
		case t.Token == pg.Token_IDENT:
			k.word = clipIdent(foldIdent(text))
		}
		out = append(out, k)
	}
	return append(out, token{kind: eof, start: len(src), end: len(src)}), nil
}

// foldIdent lowers ASCII letters only, as PostgreSQL does in UTF-8 databases.
func foldIdent(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; 'A' <= c && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// maxIdent is the longest identifier in bytes; longer ones are cut.
const maxIdent = 63

func clipIdent(s string) string {
	if len(s) <= maxIdent {
		return s
	}
	n := maxIdent
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// reserved are the words of PL/pgSQL that never name a variable unless quoted.
var reserved = map[string]bool{
	"all": true, "begin": true, "by": true, "case": true, "declare": true, "else": true,
	"end": true, "execute": true, "for": true, "foreach": true, "from": true, "if": true,
	"in": true, "into": true, "loop": true, "not": true, "null": true, "or": true,
	"strict": true, "then": true, "to": true, "using": true, "when": true, "while": true,
}

// is reports whether t is the keyword word.
func (t *token) is(word string) bool { return t.word == word && !t.quoted }

// ident reports whether t can stand where a name is expected.
func (t *token) ident() bool { return t.word != "" && (t.quoted || !reserved[t.word]) }
