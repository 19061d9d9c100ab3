package builtin

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// TestResolve compares overload resolution with PostgreSQL's parser, over all
// pairs of the types in testdata/resolve.txt. The file's header says how to
// read it.
func TestResolve(t *testing.T) {
	if *psql != "" {
		rewriteResolve(t, "testdata/resolve.txt")
	}
	b, err := os.ReadFile("testdata/resolve.txt")
	if err != nil {
		t.Fatal(err)
	}
	var types []datum.Type
	n, bad := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if line[0] == '#' {
			types = typeList(strings.Fields(line[1:]))
			continue
		}
		head, tail, _ := strings.Cut(line, ": ")
		f := strings.Fields(head)
		left := typeList(strings.Split(f[2], ","))
		for i, want := range strings.Fields(tail) {
			if want == "*" {
				continue
			}
			n++
			got := resolveCase(f[0], f[1], append(left[:len(left):len(left)], types[i]))
			if got != want {
				if bad++; bad < 40 {
					t.Errorf("%s with %s: got %s, want %s", head, types[i].Name, got, want)
				}
			}
		}
	}
	t.Logf("%d cases, %d differ", n, bad)
}

func typeList(names []string) []datum.Type {
	var out []datum.Type
	for _, n := range names {
		if d, ok := TypeByName(n); ok {
			out = append(out, datum.T(d))
		}
	}
	return out
}

func resolveCase(kind, name string, args []datum.Type) string {
	if kind == "op" || kind == "pre" {
		var left datum.Type
		if kind == "op" {
			left = args[0]
		}
		op, err := ResolveOperator(name, left, args[len(args)-1])
		if err == nil {
			declared := []*datum.Desc{op.Right}
			if kind == "op" {
				declared = []*datum.Desc{op.Left, op.Right}
			}
			_, _, err = ResolvePolymorphic(declared, op.Func.Ret, args)
		}
		if err != nil {
			return errorMark(err)
		}
		return strconv.Itoa(int(op.OID))
	}
	f, m, err := ResolveFunc(name, args, nil)
	if len(args) == 1 && !m.Exact {
		if _, ok := CastFunc(name, args[0]); ok {
			return "cast"
		}
	}
	if err == nil {
		_, _, err = ResolvePolymorphic(m.Args, f.Ret, args)
	}
	if err != nil {
		return errorMark(err)
	}
	return strconv.Itoa(int(f.OID))
}

func errorMark(err error) string {
	switch code := pgerr.CodeOf(err); code {
	case pgerr.UndefinedFunction:
		return "."
	case pgerr.AmbiguousFunction:
		return "?"
	default:
		return "!" + string(code)
	}
}

// sqlType writes a type name as SQL reads it.
func sqlType(name string) string {
	if name == "char" {
		return `"char"`
	}
	return name
}

// sqlNull is a null of a type; of type unknown without one.
func sqlNull(typ string) string {
	if typ == "unknown" {
		return "null"
	}
	return "null::" + sqlType(typ)
}

// rewriteResolve asks PostgreSQL what its parser makes of every case, by way of
// the stored tree of a view. Marks of cases that are not compared stay.
func rewriteResolve(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	script.WriteString(`set client_min_messages = error;
create function pg_temp.res(e text) returns text language plpgsql as $$
declare m text[];
begin
  execute 'create temp view rv as select ' || e || ' as x';
  select regexp_match(ev_action::text, 'TARGETENTRY :expr \{(\w+) :\w+ (\d+)') into m from pg_rewrite where ev_class = 'rv'::regclass;
  drop view rv;
  if m[1] in ('OPEXPR', 'FUNCEXPR', 'AGGREF', 'WINDOWFUNC') then return m[2]; end if;
  return 'cast';
exception when undefined_function then return '.'; when ambiguous_function then return '?'; when others then return '!' || sqlstate;
end $$;
`)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	var types []string
	for _, line := range lines {
		if line[0] == '#' {
			if f := strings.Fields(line[1:]); len(typeList(f)) == len(f) {
				types = f
			}
			continue
		}
		head, _, _ := strings.Cut(line, ": ")
		var exprs []string
		for _, typ := range types {
			exprs = append(exprs, QuoteLiteral(resolveSQL(strings.Fields(head), typ)))
		}
		fmt.Fprintf(&script, "select string_agg(pg_temp.res(e), ' ' order by i) from unnest(array[%s]) with ordinality u(e, i);\n", strings.Join(exprs, ", "))
	}
	answers := runPSQL(t, &script)
	for i, line := range lines {
		if line[0] == '#' {
			continue
		}
		head, old, _ := strings.Cut(line, ": ")
		marks, got := strings.Fields(old), strings.Fields(answers[0])
		for k := range got {
			if k < len(marks) && marks[k] == "*" {
				got[k] = "*"
			}
		}
		lines[i], answers = head+": "+strings.Join(got, " "), answers[1:]
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func resolveSQL(f []string, last string) string {
	switch f[0] {
	case "op":
		return fmt.Sprintf("%s operator(pg_catalog.%s) %s", sqlNull(f[2]), f[1], sqlNull(last))
	case "pre":
		return fmt.Sprintf("operator(pg_catalog.%s) %s", f[1], sqlNull(last))
	}
	var args []string
	if f[2] != "-" {
		for _, typ := range strings.Split(f[2], ",") {
			args = append(args, sqlNull(typ))
		}
	}
	return fmt.Sprintf("pg_catalog.%q(%s)", f[1], strings.Join(append(args, sqlNull(last)), ", "))
}
