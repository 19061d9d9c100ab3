package exec

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/plan"
)

// joinKinds lists the semijoins and antijoins by hash of a statement's plan.
func joinKinds(t *testing.T, s *sqlTest, text string) string {
	t.Helper()
	st, err := parse.One(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Statement(st.Node, &plan.Options{Catalog: s.catalog, SearchPath: []string{"blockchain"}, Format: &datum.ContractFormat, Script: text})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	var visit func(n plan.Node)
	visit = func(n plan.Node) {
		switch n := n.(type) {
		case *plan.Project:
			visit(n.Child)
		case *plan.Filter:
			visit(n.Child)
		case *plan.Sort:
			visit(n.Child)
		case *plan.HashJoin:
			switch n.Kind {
			case plan.SemiJoin:
				out = append(out, "semi")
			case plan.AntiJoin:
				out = append(out, "anti")
			}
			visit(n.Outer)
			visit(n.Inner)
		}
	}
	visit(p.Root)
	return strings.Join(out, " ")
}

func TestSemiJoinPlans(t *testing.T) {
	s := newSQLTest(t)
	for _, x := range []struct{ where, want string }{
		{"exists (select 1 from entry e where e.amount = a.balance)", "semi"},
		{"not exists (select 1 from entry e where e.amount = a.balance)", "anti"},
		{"exists (select 1 from entry e where e.amount = a.balance and e.note <> a.owner)", "semi"},
		{"a.owner in (select e.note from entry e where e.amount = a.balance)", "semi"},
		// A null on either side of NOT IN decides, so it is no antijoin.
		{"a.owner not in (select e.note from entry e where e.amount = a.balance)", ""},
		{"a.owner not in (select b.owner from account b where b.opened = a.opened)", "anti"},
		// An index finds the rows.
		{"exists (select 1 from entry e where e.account = a.id)", ""},
		{"exists (select 1 from entry e where e.account = a.id and e.amount = a.balance)", ""},
		// A single outer row.
		{"a.id = 1 and exists (select 1 from entry e where e.amount = a.balance)", ""},
		// No equality.
		{"exists (select 1 from entry e where e.amount > a.balance)", ""},
		// Not a conjunct.
		{"a.id > 1 or exists (select 1 from entry e where e.amount = a.balance)", ""},
		{"exists (select 1 from entry e where e.amount = a.balance limit 1)", ""},
		{"exists (select 1 from entry e where e.amount = a.balance and exists (select 1 from branch b where b.city = e.note))", "semi semi"},
		{"exists (select 1 from entry e where e.amount = a.balance) and not exists (select 1 from branch b where b.city = a.owner)", "anti semi"},
	} {
		if got := joinKinds(t, s, "select a.id from account a where "+x.where); got != x.want {
			t.Errorf("%s: %q, want %q", x.where, got, x.want)
		}
	}
}

// TestSemiJoinMeaning compares conditions that become joins with the same ones
// inside CASE, which stay expressions.
func TestSemiJoinMeaning(t *testing.T) {
	s := newSQLTest(t)
	r := rand.New(rand.NewPCG(1, 2))
	value := func(n int) string {
		if r.IntN(5) == 0 {
			return "null"
		}
		return fmt.Sprint(r.IntN(n))
	}
	text := func() string { return []string{"null", "'p'", "'q'", "'r'"}[r.IntN(4)] }
	insert := func(text string) {
		if out := s.statement(text, false); strings.HasPrefix(out, "ERROR") {
			t.Fatal(out)
		}
	}
	var rows []string
	for i := range 6 {
		rows = append(rows, fmt.Sprintf("(%d, %s)", i, text()))
	}
	insert("insert into branch values " + strings.Join(rows, ", "))
	rows = nil
	for i := range 30 {
		rows = append(rows, fmt.Sprintf("(%d, 'o%d', %s, %d, date '2020-01-01' + %s::int)", i, i, value(8), r.IntN(6), value(4)))
	}
	insert("insert into account values " + strings.Join(rows, ", "))
	rows = nil
	for i := range 40 {
		rows = append(rows, fmt.Sprintf("(%d, %d, %s, %s)", r.IntN(30), i, value(8), text()))
	}
	insert("insert into entry values " + strings.Join(rows, ", "))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	joined, found := 0, 0
	for range 200 {
		inner := "select " + pick("1", "e.n", "e.amount") + " from entry e where " +
			pick("e.amount = a.balance", "e.amount = a.branch", "a.balance + 1 = e.amount", "e.n = a.id and e.amount = a.balance") +
			pick("", " and e.note = 'p'", " and e.n > a.id", " and e.note is not null", " and a.branch < 3",
				" and exists (select 1 from branch b where b.city = e.note)",
				" and not exists (select 1 from branch b where b.city = e.note and b.id > a.branch)",
				" and e.amount in (select c.balance from account c where c.branch = a.branch and c.opened = a.opened)")
		cond := pick("", "not ") + "exists (" + inner + ")"
		if r.IntN(3) == 0 {
			cond = pick("a.branch", "a.id", "a.balance") + pick(" in (", " not in (") + inner + ")"
		}
		plain := "select a.id from account a where " + cond
		if joinKinds(t, s, plain) != "" {
			joined++
		}
		got, want := s.statement(plain, true), s.statement("select a.id from account a where case when "+cond+" then true end", true)
		if strings.HasPrefix(want, "ERROR") {
			t.Fatalf("%s: %s", plain, want)
		}
		if want != "" {
			found++
		}
		if got != want {
			t.Fatalf("%s:\n%s\nas an expression:\n%s", plain, got, want)
		}
	}
	if joined < 100 || found < 100 {
		t.Errorf("of 200 conditions only %d became joins and %d found rows", joined, found)
	}
}
