package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/conformance/wire"
)

func rows(names, values string) wire.Answer {
	res := wire.Result{Tag: "SELECT"}
	for _, n := range strings.Fields(names) {
		res.Columns = append(res.Columns, wire.Column{Name: n, Type: 23})
	}
	for _, v := range strings.Fields(values) {
		res.Rows = append(res.Rows, wire.Row{{Text: v, Null: v == "null"}})
	}
	return wire.Answer{Results: []wire.Result{res}}
}

func failure(code, text string) wire.Answer {
	return wire.Answer{Err: &wire.Message{Severity: "ERROR", Code: code, Text: text}}
}

func noticed(a wire.Answer, text string) wire.Answer {
	a.Notices = append(a.Notices, wire.Message{Severity: "NOTICE", Text: text})
	return a
}

func TestCompare(t *testing.T) {
	quotedNull := rows("a", "x")
	quotedNull.Results[0].Rows[0][0] = wire.Value{Text: "null"}
	otherType := rows("a", "1 2")
	otherType.Results[0].Columns[0].Type = 20
	for _, c := range []struct {
		statement string
		want, got wire.Answer
		class     class
		order     bool
		reason    string
	}{
		{"select", rows("a", "1 2"), rows("a", "1 2"), equal, false, ""},
		{"select", rows("a", "1 2"), rows("a", "2 1"), equal, true, ""},
		{"select order\nby a", rows("a", "1 2"), rows("a", "2 1"), differs, false, "order of rows"},
		{"select", rows("a", "1 1 2"), rows("a", "1 2 2"), differs, false, "rows"},
		{"select", rows("a", "1 2"), rows("a", "1"), differs, false, "number of rows"},
		{"select", rows("a", "null"), quotedNull, differs, false, "rows"},
		{"select", rows("a", "1 2"), otherType, differs, false, "type of a column: 20 instead of 23"},
		{"select", rows("a", "1"), rows("b", "1"), differs, false, "column name"},
		{"select", rows("a", "public.t"), rows("a", "private.t"), equal, false, ""},
		{"x", failure("42P01", `relation "a1" is gone`), failure("42P01", `relation "a1" is gone`), equal, false, ""},
		{"x", failure("42P01", `relation "a1" is gone`), failure("42703", `relation "a1" is gone`), differs, false,
			`other error: 42703 relation "…" is gone | PostgreSQL: 42P01 relation "…" is gone`},
		{"x", rows("a", "1"), failure("22012", "division by 0"), refused, false, "22012 division by n"},
		{"x", failure("22012", "division by zero"), rows("a", "1"), differs, false, "no error: 22012 division by zero"},
		{"x", noticed(rows("a", "1"), "hey"), rows("a", "1"), differs, false, "missing NOTICE: hey"},
		{"x", rows("a", "1"), noticed(rows("a", "1"), "hey"), differs, false, "additional NOTICE: hey"},
	} {
		v := compare(c.statement, &c.want, &c.got)
		if v.class != c.class || v.order != c.order || v.reason != c.reason {
			t.Errorf("%s\n%swant %s\ngot %v %q, want %v %q", c.statement, answerText(&c.want), answerText(&c.got), v.class, v.reason, c.class, c.reason)
		}
	}
}

func TestAdapt(t *testing.T) {
	for text, want := range map[string]string{
		"grant all on schema public to public": "grant all on schema private to public",
		"select * from public.t":               "select * from private.t",
		"set search_path = a, public":          "set search_path = a, private",
		"alter database regression set x = 1":  "alter database tallystick set x = 1",
	} {
		if got := adaptNames(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	c, ok := fileCopy("COPY t (a, b) FROM E'/dir/it''s' WITH csv")
	if !ok || !c.from || c.file != "/dir/it's" || c.text != "COPY t (a, b) FROM stdin WITH csv" {
		t.Errorf("COPY FROM a file: %+v", c)
	}
	if c, ok = fileCopy("copy (select 'from') to '/x'"); !ok || c.from || c.text != "copy (select 'from') to stdout" {
		t.Errorf("COPY TO a file: %+v", c)
	}
	if _, ok := fileCopy("copy t from stdin delimiter 'x'"); ok {
		t.Error("COPY FROM STDIN is no file")
	}
}

func TestDeclarations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "declared.txt")
	list := "# comment\nPlans.\n  * statement ^explain\nBits.\n  bit every\n  * answer ^0A000 .*\\bbit\\b\n"
	if err := os.WriteFile(path, []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := readDeclarations(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    outcome
		want string
	}{
		{outcome{file: "a", text: "EXPLAIN\nselect"}, "Plans."},
		{outcome{file: "bit", text: "select"}, "Bits."},
		{outcome{file: "a", text: "x", got: failure("0A000", "type bit is not supported")}, "Bits."},
		{outcome{file: "a", text: "x", got: failure("42704", "type bit is not supported")}, ""},
		{outcome{file: "a", text: "bit"}, ""},
	} {
		if got := d.reason(&c.o); got != c.want {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
	for _, bad := range []string{"  * every", "Reason\n  * sometimes x", "Reason\n  * answer ("} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readDeclarations(path); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// TestDeclared: the list of this tree can be read.
func TestDeclared(t *testing.T) {
	if _, err := readDeclarations("../declared.txt"); err != nil {
		t.Error(err)
	}
}

// TestJudge follows what earlier statements did to the objects of later ones.
func TestJudge(t *testing.T) {
	ok, refusal := wire.Answer{}, failure("0A000", "partitioning is not supported")
	missing := failure("42P01", "missing")
	r := &runner{effects: newEffects(), node: &side{}, declared: declarations{}}
	d, err := readDeclaration("* answer tablesample")
	if err != nil {
		t.Fatal(err)
	}
	d.reason = "chance"
	r.declared = append(r.declared, d)
	noC := failure("58P01", "could not access file")
	for _, c := range []struct {
		text      string
		want, got wire.Answer
		class     class
		cause     string
	}{
		{"create table parts (a int) partition by list (a)", ok, refusal, refused, ""},
		{"insert into parts values (1)", ok, missing, refused, "create table parts (a int) partition by list (a)"},
		{"create table parts (a int)", ok, ok, equal, ""},
		{"insert into parts values (1)", ok, missing, refused, ""},
		{"select * from parts", rows("a", "1"), rows("a", ""), differs, "insert into parts values (1)"},
		{"create view sampled as select 1", ok, failure("0A000", "TABLESAMPLE"), declared, ""},
		{"select * from sampled", ok, missing, declared, "create view sampled as select 1"},
		{"create function inc(int) returns int language c as '/nowhere/regress.so'", noC, failure("0A000", "C"), excluded, ""},
		{"select inc(1)", missing, missing, excluded, ""},
	} {
		o := &outcome{text: c.text, want: c.want, got: c.got}
		r.judge(o, 'I')
		cause := ""
		if o.cause != nil {
			cause = o.cause.text
		}
		if o.class != c.class || cause != c.cause {
			t.Errorf("%s: %v after %q, want %v after %q", c.text, o.class, cause, c.class, c.cause)
		}
	}
}

func TestReport(t *testing.T) {
	root := &outcome{file: "a", line: 1, text: "create table x()", verdict: verdict{class: refused, reason: "0A000 no | thing"}}
	list := []*outcome{
		root,
		{file: "a", line: 2, text: "select x", verdict: verdict{class: differs, reason: "rows"}, cause: root},
		{file: "a", line: 3, verdict: verdict{class: equal, order: true}},
		{file: "b", line: 1, verdict: verdict{class: declared}, why: "Because."},
		{file: "b", line: 2, verdict: verdict{class: excluded}},
	}
	var b bytes.Buffer
	if err := writeReport(&b, list, &run{version: "15"}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"- 4 statements judged; **1 equal (25.0 %)**, **2 equal or declared (50.0 %)**",
		"| a | 3 | 1 | 33.3 | 0 | 1 | 1 | 33.3 | 0 |",
		`| 1 | 1 | error | 0A000 no \| thing | a:1 |`,
		"| 1 | Because. |",
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, b.String())
		}
	}
}
