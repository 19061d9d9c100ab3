package builtin

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// testdata/aggregate.txt holds lines "aggregate types: row; row; ...", where a
// row is one value, or several separated by |, then a tab and PostgreSQL's
// answer. -psql rewrites the answers; see TestEval.
func TestAggregates(t *testing.T) {
	const file = "testdata/aggregate.txt"
	if *psql != "" {
		rewriteAggregates(t, file)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &Ctx{Format: &datum.ContractFormat}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if line[0] == '#' {
			continue
		}
		expr, want, _ := strings.Cut(line, "\t")
		if got := aggregateLine(c, expr); got != want {
			t.Errorf("%s\n got %s\nwant %s", expr, got, want)
		}
	}
}

func splitAggregate(expr string) (name string, types []string, rows [][]string) {
	head, tail, _ := strings.Cut(expr, ":")
	f := strings.Fields(head)
	for _, r := range strings.Split(tail, ";") {
		if r = strings.TrimSpace(r); r != "" {
			rows = append(rows, strings.Split(r, "|"))
		}
	}
	return f[0], f[1:], rows
}

func aggregateLine(c *Ctx, expr string) string {
	v, err := runAggregate(c, expr)
	if err != nil {
		e, _ := pgerr.From(err)
		return escapeLine.Replace("!" + string(e.Code) + " " + e.Message)
	}
	text := "NULL"
	if !v.rows[0].IsNull() {
		text = string(v.typ.Append(nil, v.rows[0], c.Format))
	}
	return escapeLine.Replace(typeName(v.typ) + " | " + text)
}

func runAggregate(c *Ctx, expr string) (value, error) {
	name, typeNames, rows := splitAggregate(expr)
	types := typeList(typeNames)
	f, m, err := ResolveFunc(name, types, nil)
	if err != nil {
		return value{}, err
	}
	bound, ret, err := ResolvePolymorphic(m.Args, f.Ret, types)
	if err != nil {
		return value{}, err
	}
	for i := range bound {
		if bound[i].Desc == datum.Any {
			bound[i] = types[i]
		}
	}
	state := f.NewState(bound)
	row := make([]datum.Datum, len(types))
next:
	for _, r := range rows {
		for i, s := range r[:len(row)] {
			if row[i] = datum.Null; s != "NULL" {
				if row[i], err = types[i].Parse(s, -1, c.Format); err != nil {
					return value{}, err
				}
				v, err := castValue(c, value{types[i], row[i : i+1]}, bound[i], Implicit)
				if err != nil {
					return value{}, err
				}
				row[i] = v.rows[0]
			} else if f.Strict {
				continue next
			}
		}
		if err := state.Add(c, row); err != nil {
			return value{}, err
		}
	}
	d, err := state.Result(c)
	return value{ret, []datum.Datum{d}}, err
}

func rewriteAggregates(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	script.WriteString(`set timezone = 'UTC'; set client_min_messages = error;
create function pg_temp.ev(e text) returns text language plpgsql as $$
declare r text; t text;
begin
  execute 'select pg_typeof(x), case when x is null then ''NULL'' else concat(x) end from (' || e || ') s' into t, r;
  return replace(replace(t || ' | ' || r, chr(10), '\n'), chr(9), '\t');
exception when others then return replace('!' || sqlstate || ' ' || sqlerrm, chr(10), '\n');
end $$;
`)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for i, line := range lines {
		if line[0] == '#' {
			continue
		}
		lines[i], _, _ = strings.Cut(line, "\t")
		name, types, rows := splitAggregate(lines[i])
		var cols, values []string
		for k, typ := range types {
			if typ == "char" {
				typ = `"char"`
			}
			cols = append(cols, fmt.Sprintf("c%d::%s", k, typ))
		}
		for _, r := range rows {
			for k, s := range r {
				if r[k] = QuoteLiteral(s); s == "NULL" {
					r[k] = "NULL"
				}
			}
			values = append(values, "("+strings.Join(r, ",")+")")
		}
		where := ""
		if len(values) == 0 {
			values, where = []string{"(" + strings.TrimSuffix(strings.Repeat("NULL,", max(len(types), 1)), ",") + ")"}, " where false"
		}
		arg := strings.Join(cols, ", ")
		if arg == "" {
			arg = "*"
		}
		var names []string
		for k := range max(len(types), 1) {
			names = append(names, fmt.Sprintf("c%d", k))
		}
		fmt.Fprintf(&script, "select pg_temp.ev(%s);\n", QuoteLiteral(fmt.Sprintf("select %s(%s) as x from (values %s) v(%s)%s",
			name, arg, strings.Join(values, ", "), strings.Join(names, ", "), where)))
	}
	answers := runPSQL(t, &script)
	for i, line := range lines {
		if line[0] != '#' {
			lines[i], answers = line+"\t"+answers[0], answers[1:]
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkSumNumeric(b *testing.B) { benchmarkAggregate(b, "sum", datum.Numeric, "12.34") }
func BenchmarkSumInt4(b *testing.B)    { benchmarkAggregate(b, "sum", datum.Int4, "12") }
func BenchmarkAvgInt8(b *testing.B)    { benchmarkAggregate(b, "avg", datum.Int8, "12") }
func BenchmarkMaxText(b *testing.B)    { benchmarkAggregate(b, "max", datum.Text, "hello") }

func benchmarkAggregate(b *testing.B, name string, typ *datum.Desc, text string) {
	f, _, err := ResolveFunc(name, []datum.Type{datum.T(typ)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	v, err := typ.Parse(text, -1, &datum.ContractFormat)
	if err != nil {
		b.Fatal(err)
	}
	c := &Ctx{Format: &datum.ContractFormat}
	row := []datum.Datum{v}
	state := f.NewState([]datum.Type{datum.T(typ)})
	b.ReportAllocs()
	for b.Loop() {
		if err := state.Add(c, row); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEval(b *testing.B) {
	for _, expr := range []string{"int4 '3' + int4 '4'", "numeric '1.25' * numeric '3.5'", "text 'abc' = text 'abd'",
		"text 'abcdef' ~~ 'ab%ef'", "text 'abcdef' ~ '^ab.*f$'", "upper('hello')", "exp(float8 '1.5')", "sin(float8 '1.5')"} {
		b.Run(expr, func(b *testing.B) {
			eval, row := compileCase(b, expr)
			c := &Ctx{Format: &datum.ContractFormat}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := eval(c, row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// compileCase finds the implementation behind an operator or a call of one
// argument, with its arguments.
func compileCase(b *testing.B, expr string) (Eval, []datum.Datum) {
	c := &Ctx{Format: &datum.ContractFormat}
	p := &exprParser{s: expr, c: c}
	if name, _, ok := strings.Cut(expr, "("); ok && !strings.Contains(name, " ") {
		p.word()
		p.accept("(")
		v, err := p.primary()
		if err != nil {
			b.Fatal(err)
		}
		f, _, err := ResolveFunc(name, []datum.Type{v.typ}, nil)
		if err != nil {
			b.Fatal(err)
		}
		return f.Eval, v.rows
	}
	l, err := p.primary()
	if err != nil {
		b.Fatal(err)
	}
	op := p.operator()
	r, err := p.primary()
	if err != nil {
		b.Fatal(err)
	}
	o, err := ResolveOperator(op, l.typ, r.typ)
	if err != nil {
		b.Fatal(err)
	}
	return o.Func.Eval, []datum.Datum{l.rows[0], r.rows[0]}
}
