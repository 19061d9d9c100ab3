package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestScripts(t *testing.T) {
	files, err := scripts("testdata")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			got, err := runFile(f, func(line int, why string) { t.Errorf("%s:%d: %s", f, line, why) })
			if err != nil {
				t.Fatal(err)
			}
			if got.passed == 0 {
				t.Error("no record ran")
			}
		})
	}
}

// What is wrong in a script is found: each of these has one record that fails.
func TestFailures(t *testing.T) {
	for _, c := range []struct{ script, why string }{
		{"statement ok\nSELECT x", "ERROR 42703"},
		{"statement ok\nSELECT FROM FROM", "ERROR 42601"},
		{"statement error\nSELECT 1", "no error"},
		{"query I\nSELECT 1\n----\n2", "---- got\n1"},
		{"query I\nSELECT 1\n----", "---- got\n1"},
		{"query I\nSELECT 1 WHERE false\n----\n1", "---- expected\n1"},
		{"query I\nSELECT 'x'\n----\n0", "---- got\nx"},
		{"query II\nSELECT 1\n----\n1", "1 columns instead of 2"},
		{"query I nosort\nVALUES (2), (1)\n----\n1\n2", "---- got\n2\n1"},
		{"query I\nSELECT 1\n----\n1 values hashing to 00", "---- got\n1"},
		{"hash-threshold 1\n\nquery I\nVALUES (1), (2)\n----\n1", "---- got\n2 values hashing to 6ddb4095eb719e2a9f0a3f95677d24e0"},
		{"query I nosort a\nSELECT 1\n----\n1\n\nquery I nosort a\nSELECT 2\n----\n2", "but label a had"},
		{"onlyif postgresql\nstatement ok\nSELECT x", "ERROR 42703"},
		{"skipif mysql\nstatement ok\nSELECT x", "ERROR 42703"},
		{"onlyif mysql\nhalt\n\nstatement ok\nSELECT x", "ERROR 42703"},
	} {
		path := filepath.Join(t.TempDir(), "x.test")
		if err := os.WriteFile(path, []byte(c.script+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		var whys []string
		got, err := runFile(path, func(_ int, why string) { whys = append(whys, why) })
		if err != nil {
			t.Errorf("%q: %v", c.script, err)
			continue
		}
		if got.failed != 1 || len(whys) != 1 || !strings.Contains(whys[0], c.why) {
			t.Errorf("%q: %+v, failures %q; want one with %q", c.script, got, whys, c.why)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parseScript("# c\nskipif postgresql\nonlyif mysql # why\nstatement error\nSELECT\r\n  1\n\nhash-threshold 8\n" +
		"query IT rowsort a-b\nSELECT 1,\n2\n----\n1\n2\n\nquery R\nSELECT 1\n\nquery R\nSELECT 1\n----\n\nhalt")
	if err != nil {
		t.Fatal(err)
	}
	want := []*record{
		{kind: statement, line: 4, skip: true, fails: true, sql: "SELECT\n  1"},
		{kind: threshold, line: 8, limit: 8},
		{kind: query, line: 9, types: "IT", sort: "rowsort", label: "a-b", sql: "SELECT 1,\n2", checked: true, expected: []string{"1", "2"}},
		{kind: query, line: 16, types: "R", sort: "nosort", sql: "SELECT 1"},
		{kind: query, line: 19, types: "R", sort: "nosort", sql: "SELECT 1", checked: true, expected: []string{}},
		{kind: halt, line: 23},
	}
	if len(got) != len(want) {
		t.Fatalf("%d records", len(got))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("record %d is %+v, not %+v", i, *got[i], *want[i])
		}
	}
	for _, bad := range []string{"statement", "statement maybe\nx", "query\nx", "query X\nx", "query I down\nx", "hash-threshold", "hash-threshold x", "skipif", "loop 1"} {
		if _, err := parseScript(bad); err == nil {
			t.Errorf("%q was parsed", bad)
		}
	}
}

func TestShow(t *testing.T) {
	for _, c := range []struct {
		v    value
		as   byte
		want string
	}{
		{value{null: true}, 'I', "NULL"}, {value{text: "-7"}, 'I', "-7"}, {value{text: "-7.9"}, 'I', "-7"}, {value{text: "1e+20"}, 'I', "100000000000000000000"},
		{value{text: "t"}, 'I', "1"}, {value{text: "f"}, 'I', "0"}, {value{text: "x"}, 'I', "x"},
		{value{text: "1"}, 'R', "1.000"}, {value{text: "2.0006"}, 'R', "2.001"}, {value{null: true}, 'R', "NULL"},
		{value{text: ""}, 'T', "(empty)"}, {value{text: "a\nb~\x7f"}, 'T', "a@b~@"}, {value{null: true}, 'T', "NULL"}, {value{text: "NULL"}, 'T', "NULL"},
	} {
		if got := show(c.v, c.as); got != c.want {
			t.Errorf("%+v as %c is %q, not %q", c.v, c.as, got, c.want)
		}
	}
}
