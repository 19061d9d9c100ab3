package parse

import (
	"errors"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
	pgparser "github.com/pganalyze/pg_query_go/v6/parser"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// MaxBytes is the longest script that is parsed.
const MaxBytes = 4 << 20

// MaxDepth bounds the nesting of parentheses and brackets; deeper text would
// exhaust the stack of the grammar's recursive consumers.
const MaxDepth = 1000

// Statement is one statement of a script.
type Statement struct {
	Node *pg.Node
	// Text is the statement without surrounding space and without its semicolon.
	Text string
	// Offset is the byte offset of Text in the script; positions in Node count
	// bytes from the start of the script.
	Offset int
	// Script is the whole text that Offset and positions refer to.
	Script string
}

// Statements splits and parses a script. An empty script gives no statement.
func Statements(script string) ([]Statement, error) {
	if err := checkBounds(script); err != nil {
		return nil, err
	}
	tree, err := pg.Parse(script)
	if err != nil {
		return nil, syntaxError(err, script, 0)
	}
	out := make([]Statement, 0, len(tree.Stmts))
	for _, raw := range tree.Stmts {
		start, end := int(raw.StmtLocation), len(script)
		if raw.StmtLen > 0 {
			end = start + int(raw.StmtLen)
		}
		text := script[start:end]
		trimmed := strings.TrimLeft(text, " \t\r\n\f\v")
		out = append(out, Statement{
			Node:   raw.Stmt,
			Text:   strings.TrimRight(trimmed, " \t\r\n\f\v"),
			Offset: start + len(text) - len(trimmed),
			Script: script,
		})
	}
	return out, nil
}

// One parses a text that must hold exactly one statement.
func One(text string) (Statement, error) {
	list, err := Statements(text)
	if err != nil {
		return Statement{}, err
	}
	if len(list) != 1 {
		return Statement{}, pgerr.New(pgerr.SyntaxError, "expected one statement, found %d", len(list))
	}
	return list[0], nil
}

const exprPrefix = "SELECT "

// Expression parses the text of an expression (a default, a CHECK constraint,
// an expression of PL/pgSQL). Positions in the result and in errors are those
// of the text itself.
func Expression(text string) (*pg.Node, error) {
	if err := checkBounds(text); err != nil {
		return nil, err
	}
	tree, err := pg.Parse(exprPrefix + text)
	if err != nil {
		return nil, syntaxError(err, exprPrefix+text, len(exprPrefix))
	}
	if len(tree.Stmts) == 1 {
		sel := tree.Stmts[0].Stmt.GetSelectStmt()
		if sel != nil && isBareTarget(sel) {
			return sel.TargetList[0].GetResTarget().Val, nil
		}
	}
	return nil, pgerr.New(pgerr.SyntaxError, "expected an expression, found \"%s\"", Clip(text))
}

// ExpressionOffset is what has to be subtracted from the byte locations in the
// nodes that [Expression] returns.
const ExpressionOffset = len(exprPrefix)

func isBareTarget(s *pg.SelectStmt) bool {
	return len(s.TargetList) == 1 && len(s.FromClause) == 0 && s.WhereClause == nil &&
		len(s.GroupClause) == 0 && len(s.SortClause) == 0 && s.LimitCount == nil &&
		s.LimitOffset == nil && s.IntoClause == nil && len(s.DistinctClause) == 0 &&
		len(s.ValuesLists) == 0 && s.WithClause == nil && s.Op == pg.SetOperation_SETOP_NONE
}

// Clip shortens a text for use in a message.
func Clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// Position turns a byte location of the grammar (0-based, -1 = unknown) into
// the 1-based character position that clients expect.
func Position(script string, location int32) int {
	if location < 0 || int(location) > len(script) {
		return 0
	}
	return utf8.RuneCountInString(script[:location]) + 1
}

func checkBounds(text string) error {
	if len(text) > MaxBytes {
		return pgerr.New(pgerr.StatementTooComplex, "statement of %d bytes exceeds the limit of %d bytes", len(text), MaxBytes).
			WithHint("Split it into smaller statements.")
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return pgerr.New(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": 0x00")
	}
	if !utf8.ValidString(text) {
		return pgerr.New(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\"")
	}
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', ']':
			depth--
		}
	}
	if deepest > MaxDepth {
		return pgerr.New(pgerr.StatementTooComplex, "statement nests parentheses %d deep, more than %d", deepest, MaxDepth)
	}
	return nil
}

// syntaxError converts an error of the grammar; skip bytes at the start of
// script are not part of what the user wrote.
func syntaxError(err error, script string, skip int) error {
	var pe *pgparser.Error
	if !errors.As(err, &pe) {
		return pgerr.New(pgerr.SyntaxError, "%v", err)
	}
	code := pgerr.SyntaxError
	if strings.HasPrefix(pe.Message, "frame start") || strings.HasPrefix(pe.Message, "frame end") {
		code = pgerr.WindowingError // the grammar checks the ends of window frames
	}
	e := pgerr.New(code, "%s", pe.Message)
	if pe.Cursorpos > 0 {
		e.Position = max(pe.Cursorpos-utf8.RuneCountInString(script[:skip]), 1)
	}
	return e
}
