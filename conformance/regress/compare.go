package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/conformance/wire"
)

// class says how the answers to a statement compare.
type class int

const (
	equal class = iota
	declared
	differs
	refused // an error where PostgreSQL has none
	excluded
	classes
)

func (c class) String() string {
	return [...]string{"equal", "declared", "differs", "error", "excluded"}[c]
}

// verdict is the outcome of comparing two answers.
type verdict struct {
	class  class
	reason string // the shape of the difference; "" if equal
	order  bool   // equal, but the rows came in another order
	extras bool   // equal, but detail, hint or position differ
}

// firstUserOID is the first OID that a server gives to objects of users; types
// from there on have different numbers everywhere.
const firstUserOID = 16384

var orderBy = regexp.MustCompile(`(?i)\border\s+by\b`)

// compare judges the node's answer (got) by PostgreSQL's (want).
func compare(statement string, want, got *wire.Answer) verdict {
	switch {
	case want.Err == nil && got.Err != nil:
		return verdict{class: refused, reason: shape(got.Err)}
	case want.Err != nil && got.Err == nil:
		return verdict{class: differs, reason: "no error: " + shape(want.Err)}
	case want.Err != nil:
		return compareErrors(want, got)
	}
	if len(want.Results) != len(got.Results) {
		return verdict{class: differs, reason: "number of results"}
	}
	v := verdict{}
	for i := range want.Results {
		reason, order := compareResults(&want.Results[i], &got.Results[i], !orderBy.MatchString(statement))
		if reason != "" {
			return verdict{class: differs, reason: reason}
		}
		v.order = v.order || order
	}
	if reason := compareNotices(want, got); reason != "" {
		return verdict{class: differs, reason: reason}
	}
	return v
}

func compareErrors(want, got *wire.Answer) verdict {
	w, g := want.Err, got.Err
	if w.Code != g.Code || nodeNames(w.Text) != nodeNames(g.Text) {
		if w.Code == g.Code {
			return verdict{class: differs, reason: "other message: " + shape(g) + " | PostgreSQL: " + shape(w)}
		}
		return verdict{class: differs, reason: "other error: " + shape(g) + " | PostgreSQL: " + shape(w)}
	}
	if reason := compareNotices(want, got); reason != "" {
		return verdict{class: differs, reason: reason}
	}
	return verdict{extras: nodeNames(w.Detail) != nodeNames(g.Detail) || nodeNames(w.Hint) != nodeNames(g.Hint) || w.Position != g.Position}
}

// compareResults returns the shape of the difference, "" if there is none, and
// whether it was only the order of the rows, where that is open.
func compareResults(want, got *wire.Result, anyOrder bool) (reason string, order bool) {
	if len(want.Columns) != len(got.Columns) {
		return "number of columns", false
	}
	for i, w := range want.Columns {
		g := got.Columns[i]
		if nodeNames(w.Name) != nodeNames(g.Name) {
			return "column name", false
		}
		if w.Type != g.Type && w.Type < firstUserOID {
			return fmt.Sprintf("type of a column: %d instead of %d", g.Type, w.Type), false
		}
	}
	if string(want.Out) != string(got.Out) {
		return "data of COPY", false
	}
	w, g := rowTexts(want.Rows), rowTexts(got.Rows)
	if !slices.Equal(w, g) {
		if len(w) != len(g) {
			return "number of rows", false
		}
		slices.Sort(w)
		slices.Sort(g)
		if !slices.Equal(w, g) {
			return "rows", false
		}
		if !anyOrder {
			return "order of rows", false
		}
		order = true
	}
	if nodeNames(want.Tag) != nodeNames(got.Tag) {
		return "command tag: " + got.Tag + " instead of " + want.Tag, false
	}
	return "", order
}

// rowTexts makes rows comparable.
func rowTexts(rows []wire.Row) []string {
	texts := make([]string, len(rows))
	for i, r := range rows {
		var b strings.Builder
		for _, v := range r {
			if v.Null {
				b.WriteString("\x00null")
			}
			b.WriteString(nodeNames(v.Text))
			b.WriteByte('\x1f')
		}
		texts[i] = b.String()
	}
	return texts
}

func compareNotices(want, got *wire.Answer) string {
	w, g := noticeTexts(want), noticeTexts(got)
	if slices.Equal(w, g) {
		return ""
	}
	for i, n := range w {
		if i >= len(g) {
			return "missing " + mask(n)
		}
		if n != g[i] {
			return "other notice: " + mask(g[i]) + " | PostgreSQL: " + mask(n)
		}
	}
	return "additional " + mask(g[len(w)])
}

func noticeTexts(a *wire.Answer) []string {
	texts := make([]string, len(a.Notices))
	for i, n := range a.Notices {
		texts[i] = n.Severity + ": " + nodeNames(n.Text)
	}
	return texts
}

// shape is a message without the names and numbers of one case.
func shape(m *wire.Message) string { return m.Code + " " + mask(m.Text) }

var (
	quotedName = regexp.MustCompile(`"[^"]*"`)
	number     = regexp.MustCompile(`\b\d+(\.\d+)?\b`)
)

const shapeLimit = 140

func mask(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	s = number.ReplaceAllString(quotedName.ReplaceAllString(s, `"…"`), "n")
	if r := []rune(s); len(r) > shapeLimit {
		s = string(r[:shapeLimit]) + "…"
	}
	return s
}
