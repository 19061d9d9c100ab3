package exec

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// TestSQL runs statements through the planner. The files in testdata hold what
// PostgreSQL 15 answers to the same statements over the same tables; where rows
// have no order there, the statement has an ORDER BY.
//
//	schema     the tables, as PostgreSQL would be told
//	query      the rows of a statement, one a line, columns separated by |
//	exec       the number of rows that a statement changes
//
// Errors are shown as SQLSTATE, message and detail. Every statement runs in one
// transaction that is committed as a block of its own; an error drops it.
func TestSQL(t *testing.T) {
	for _, file := range []string{"testdata/select.sql", "testdata/modify.sql"} {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			s := newSQLTest(t)
			datadriven.RunTest(t, file, func(t *testing.T, td *datadriven.TestData) string {
				switch td.Cmd {
				case "schema":
					return ""
				case "query", "exec":
					return s.statement(td.Input, td.Cmd == "query")
				}
				t.Fatalf("%s: command %s", td.Pos, td.Cmd)
				return ""
			})
		})
	}
}

// sqlTest is a database with the tables that testdata/select.sql shows.
type sqlTest struct {
	*db
	catalog *catalog.Catalog
}

func newSQLTest(t *testing.T) *sqlTest {
	s := &sqlTest{db: newDB(t)}
	branch := testTable(1<<31+100, "branch", 1, "id", tInt, "city", tText)
	account := testTable(1<<31+200, "account", 1, "id", tInt, "owner", tText, "balance", tNum, "branch", tInt, "opened", datum.T(datum.Date))
	account.Columns[1].NotNull = true
	account.Checks = []catalog.Check{{Name: "account_balance_check", Expr: "balance >= -1000"}}
	addIndex(account, "account_owner_key", true, catalog.IndexKey{Column: 1})
	addIndex(account, "account_branch_balance_idx", false, catalog.IndexKey{Column: 3}, catalog.IndexKey{Column: 2, Desc: true, NullsFirst: true})
	account.ForeignKeys = []catalog.ForeignKey{{Name: "account_branch_fkey", Columns: []int{3}, RefSchema: "blockchain", RefTable: "branch", RefColumns: []int{0}, OnDelete: "a", OnUpdate: "a"}}
	entry := testTable(1<<31+300, "entry", 2, "account", tInt, "n", tInt, "amount", tNum, "note", tText)
	entry.ForeignKeys = []catalog.ForeignKey{{Name: "entry_account_fkey", Columns: []int{0}, RefSchema: "blockchain", RefTable: "account", RefColumns: []int{0}, OnDelete: "c", OnUpdate: "c"}}
	e := s.env()
	c, err := catalog.Load(e.Txn)
	if err != nil {
		t.Fatal(err)
	}
	ed := catalog.NewEditor(e.Txn, c)
	for _, tab := range []*catalog.Table{branch, account, entry} {
		if err := ed.PutTable(tab); err != nil {
			t.Fatal(err)
		}
	}
	s.catalog = ed.Catalog()
	s.commit(e)
	return s
}

func (s *sqlTest) statement(text string, rows bool) string {
	e := s.env()
	e.Catalog = s.catalog
	out, err := s.run(e, text, rows)
	if err == nil {
		if e.Txn.Writes() > 0 {
			s.commit(e)
		}
		return out
	}
	pe, ok := pgerr.From(err)
	if !ok {
		s.t.Fatalf("%s: %v", text, err)
	}
	out = fmt.Sprintf("ERROR %s: %s\n", pe.Code, pe.Message)
	if pe.Detail != "" {
		out += "DETAIL: " + pe.Detail + "\n"
	}
	return out
}

func (s *sqlTest) run(e *Env, text string, wantRows bool) (string, error) {
	st, err := parse.One(text)
	if err != nil {
		return "", err
	}
	p, err := plan.Statement(st.Node, &plan.Options{Catalog: s.catalog, SearchPath: []string{"blockchain"}, Format: &datum.ContractFormat, Script: text})
	if err != nil {
		return "", err
	}
	prog, err := Compile(p)
	if err != nil {
		return "", err
	}
	c, err := prog.Open(e, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	var b strings.Builder
	for {
		row, err := c.Next()
		if err != nil {
			return "", err
		}
		if row == nil {
			break
		}
		for i, d := range row {
			if i > 0 {
				b.WriteByte('|')
			}
			if d.IsNull() {
				b.WriteString("NULL")
			} else {
				b.Write(p.Columns[i].Type.Append(nil, d, &datum.ContractFormat))
			}
		}
		b.WriteByte('\n')
	}
	if !wantRows {
		fmt.Fprintf(&b, "%d\n", c.RowsAffected())
	}
	return b.String(), nil
}
