package catalog

import (
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
)

// KeyText is a key of an index as pg_get_indexdef shows it: an expression that
// is not a function call stands in parentheses. Pretty leaves out those that the
// expression has around itself.
func (t *Table) KeyText(k *IndexKey, pretty bool) string {
	switch {
	case k.Column >= 0:
		return datum.QuoteIdent(t.Columns[k.Column].Name)
	case isCall(k.Expr):
		return k.Expr
	}
	return "(" + PrettyExpr(k.Expr, pretty) + ")"
}

// PredicateText is the WHERE of a partial index as pg_get_indexdef shows it.
func (x *Index) PredicateText(pretty bool) string { return PrettyExpr(x.Predicate, pretty) }

// PrettyExpr takes the parentheses around a whole expression away if pretty is
// wanted.
func PrettyExpr(text string, pretty bool) string {
	if pretty && strings.HasPrefix(text, "(") && closing(text, 0) == len(text)-1 {
		return text[1 : len(text)-1]
	}
	return text
}

// isCall tells that a text is a function call and nothing else.
func isCall(text string) bool {
	open := strings.IndexByte(text, '(')
	if open <= 0 || closing(text, open) != len(text)-1 {
		return false
	}
	return strings.IndexFunc(text[:open], func(r rune) bool {
		return r != '_' && r != '.' && r != '"' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r < 0x80
	}) < 0
}

// closing finds the parenthesis that closes the one at open, -1 if there is none.
// Parentheses in quotes do not count.
func closing(text string, open int) int {
	depth := 0
	for i := open; i < len(text); i++ {
		switch c := text[i]; c {
		case '\'', '"':
			n := strings.IndexByte(text[i+1:], c)
			if n < 0 {
				return -1
			}
			i += n + 1
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
