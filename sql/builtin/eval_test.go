package builtin

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// The files testdata/eval_*.txt hold one expression a line, then a tab and what
// PostgreSQL 15 answers: "type | value", or "!SQLSTATE message". They are
// rewritten from a server whose database has collation C and character type
// C.UTF-8:
//
//	go test ./sql/builtin -run TestEval -psql "psql -h HOST -p PORT -U postgres DATABASE"
var psql = flag.String("psql", "", "command line of a psql whose answers rewrite the expectations")

func TestEval(t *testing.T) {
	files, err := filepath.Glob("testdata/eval_*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			if *psql != "" {
				rewriteEval(t, f)
			}
			runEval(t, f)
		})
	}
}

func runEval(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	format := datum.ContractFormat
	format.RegName = func(_ *datum.Desc, oid datum.OID) string { return typeName(datum.T(datum.ByOID(oid))) }
	c := &Ctx{Format: &format, Session: testSession()}
	n := 0
	for i, line := range strings.Split(string(b), "\n") {
		if zone, ok := strings.CutPrefix(line, "# zone "); ok {
			if format.Zone, err = datum.LoadZone(zone); err != nil {
				t.Fatal(err)
			}
			format.ZoneName = zone
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		expr, want, ok := strings.Cut(line, "\t")
		if !ok {
			t.Errorf("%s:%d: no expectation", file, i+1)
			continue
		}
		n++
		if got := evalLine(c, expr); got != want {
			t.Errorf("%s:%d: %s\n got %s\nwant %s", file, i+1, expr, got, want)
		}
	}
	t.Logf("%d expressions", n)
}

func testSession() *SessionInfo {
	return &SessionInfo{User: "postgres", SessionUser: "postgres", Database: "u8",
		SearchPath: []string{"public"}, Clock: func() int64 { return time.Now().UnixMicro() }}
}

var escapeLine = strings.NewReplacer("\n", `\n`, "\t", `\t`)

// evalLine evaluates an expression and writes the result as the test files do.
func evalLine(c *Ctx, expr string) (out string) {
	defer func() {
		if r := recover(); r != nil {
			out = fmt.Sprintf("panic: %v", r)
		}
	}()
	p := &exprParser{s: expr, c: c}
	v, err := p.expression()
	if err == nil && strings.TrimSpace(p.s) != "" {
		err = fmt.Errorf("cannot parse %q", p.s)
	}
	if err != nil {
		e, ok := pgerr.From(err)
		if !ok {
			return "error: " + err.Error()
		}
		return escapeLine.Replace("!" + string(e.Code) + " " + e.Message)
	}
	texts := make([]string, 0, 1)
	for _, d := range v.rows {
		if d.IsNull() {
			texts = append(texts, "NULL")
			continue
		}
		texts = append(texts, string(v.typ.Append(nil, d, c.Format)))
	}
	if len(texts) == 0 {
		return "(no rows)"
	}
	return escapeLine.Replace(typeName(v.typ) + " | " + strings.Join(texts, " ; "))
}

// rewriteEval asks PostgreSQL for the expectations of a file.
func rewriteEval(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	script.WriteString(`set timezone = 'UTC'; set client_min_messages = error;
create function pg_temp.ev(e text) returns text language plpgsql as $$
declare r text; t text;
begin
  execute 'select min(pg_typeof(x)::text), string_agg(case when x is null then ''NULL'' else concat(x) end, '' ; '') from (select ' || e || ' as x) s' into t, r;
  if t is null then return '(no rows)'; end if;
  return replace(replace(t || ' | ' || r, chr(10), '\n'), chr(9), '\t');
exception when others then return replace('!' || sqlstate || ' ' || sqlerrm, chr(10), '\n');
end $$;
`)
	var out []string
	for _, line := range strings.Split(strings.TrimRight(string(b), "\n"), "\n") {
		if zone, ok := strings.CutPrefix(line, "# zone "); ok {
			fmt.Fprintf(&script, "set timezone = '%s';\n", zone)
		}
		expr, _, _ := strings.Cut(line, "\t")
		out = append(out, expr)
		if line != "" && line[0] != '#' {
			fmt.Fprintf(&script, "select pg_temp.ev(%s);\n", QuoteLiteral(expr))
		}
	}
	answers := runPSQL(t, &script)
	for i, expr := range out {
		if expr != "" && expr[0] != '#' {
			out[i], answers = expr+"\t"+answers[0], answers[1:]
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(out, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// runPSQL runs a script and returns the lines that it writes.
func runPSQL(t *testing.T, script *bytes.Buffer) []string {
	t.Helper()
	args := append(strings.Fields(*psql), "-XAtq")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stderr = script, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// value is the result of an expression: one row, or those of a set.
type value struct {
	typ  datum.Type
	rows []datum.Datum
}

func one(t *datum.Desc, d datum.Datum) value { return value{datum.T(t), []datum.Datum{d}} }

// exprParser evaluates the little language of the test files, a subset of SQL:
// literals, NULL, calls, x::type, and one operator between two operands.
type exprParser struct {
	s string
	c *Ctx
}

func (p *exprParser) space() { p.s = strings.TrimLeft(p.s, " ") }

func (p *exprParser) accept(tok string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.s, tok)
	if ok {
		p.s = rest
	}
	return ok
}

const operatorChars = "+-*/<>=~!@#%^&|?"

func (p *exprParser) operator() string {
	p.space()
	n := 0
	for n < len(p.s) && strings.IndexByte(operatorChars, p.s[n]) >= 0 {
		n++
	}
	op := p.s[:n]
	p.s = p.s[n:]
	return op
}

func (p *exprParser) expression() (value, error) {
	if op := p.operator(); op != "" {
		if p.s != "" && op == "-" && p.s[0] >= '0' && p.s[0] <= '9' {
			p.s = "-" + p.s
			return p.binary()
		}
		right, err := p.operand()
		if err != nil {
			return value{}, err
		}
		return applyOperator(p.c, op, nil, &right)
	}
	return p.binary()
}

func (p *exprParser) binary() (value, error) {
	left, err := p.operand()
	if err != nil {
		return value{}, err
	}
	op := p.operator()
	if op == "" {
		return left, nil
	}
	right, err := p.operand()
	if err != nil {
		return value{}, err
	}
	return applyOperator(p.c, op, &left, &right)
}

func (p *exprParser) operand() (value, error) {
	v, err := p.primary()
	for err == nil && p.accept("::") {
		var t datum.Type
		if t, err = p.typeName(); err == nil {
			v, err = castValue(p.c, v, t, Explicit)
		}
	}
	return v, err
}

func (p *exprParser) word() string {
	p.space()
	if rest, ok := strings.CutPrefix(p.s, `"`); ok {
		w, rest, _ := strings.Cut(rest, `"`)
		p.s = rest
		return w
	}
	n := 0
	for n < len(p.s) && (p.s[n] == '_' || p.s[n] >= '0' && p.s[n] <= '9' || p.s[n] >= 'a' && p.s[n] <= 'z' || p.s[n] >= 'A' && p.s[n] <= 'Z') {
		n++
	}
	w := p.s[:n]
	p.s = p.s[n:]
	return w
}

// typeName reads a type, with a length or precision of numeric and strings.
func (p *exprParser) typeName() (datum.Type, error) {
	name := p.word()
	d, ok := TypeByName(name)
	if !ok {
		return datum.Type{}, fmt.Errorf("no type %q in %q", name, p.s)
	}
	t := datum.T(d)
	if p.accept("(") {
		var args []int64
		for !p.accept(")") {
			var n int64
			fmt.Sscan(p.word(), &n)
			args = append(args, n)
			p.accept(",")
		}
		mod, err := datum.ModIn(d, args)
		if err != nil {
			return t, err
		}
		t.Mod = mod
	}
	if p.accept("[]") {
		t.Desc = t.Array
	}
	return t, nil
}

func (p *exprParser) primary() (value, error) {
	p.space()
	switch {
	case p.accept("("):
		v, err := p.expression()
		if err == nil && !p.accept(")") {
			err = fmt.Errorf("no ) in %q", p.s)
		}
		return v, err
	case strings.HasPrefix(p.s, "'"), strings.HasPrefix(p.s, "E'"):
		return one(datum.Unknown, datum.Str(p.str())), nil
	case p.s != "" && (p.s[0] >= '0' && p.s[0] <= '9' || p.s[0] == '-' && len(p.s) > 1 && p.s[1] >= '0' && p.s[1] <= '9'):
		return p.number()
	}
	name := p.word()
	switch strings.ToLower(name) {
	case "":
		return value{}, fmt.Errorf("nothing to parse in %q", p.s)
	case "null":
		return one(datum.Unknown, datum.Null), nil
	case "true", "false":
		return one(datum.BoolType, datum.Bool(strings.ToLower(name) == "true")), nil
	}
	p.space()
	if strings.HasPrefix(p.s, "'") || strings.HasPrefix(p.s, "E'") {
		d, ok := TypeByName(name)
		if !ok {
			return value{}, fmt.Errorf("no type %q", name)
		}
		return castValue(p.c, one(datum.Unknown, datum.Str(p.str())), datum.T(d), Explicit)
	}
	if !p.accept("(") {
		return value{}, fmt.Errorf("no call of %q in %q", name, p.s)
	}
	return p.call(name)
}

func (p *exprParser) str() string {
	escapes := p.accept("E")
	p.s = p.s[1:]
	var b strings.Builder
	for p.s != "" {
		c := p.s[0]
		p.s = p.s[1:]
		switch {
		case c == '\'' && strings.HasPrefix(p.s, "'"):
			p.s = p.s[1:]
			b.WriteByte('\'')
		case c == '\'':
			return b.String()
		case c == '\\' && escapes:
			e := p.s[0]
			p.s = p.s[1:]
			switch e {
			case 'n':
				e = '\n'
			case 't':
				e = '\t'
			}
			b.WriteByte(e)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (p *exprParser) number() (value, error) {
	n := 0
	for n < len(p.s) && strings.IndexByte("-0123456789.", p.s[n]) >= 0 {
		n++
	}
	s := p.s[:n]
	p.s = p.s[n:]
	t := datum.Int4
	if strings.Contains(s, ".") {
		t = datum.Numeric
	} else if _, err := datum.Int4.Parse(s, -1, p.c.Format); err != nil {
		t = datum.Int8
	}
	d, err := t.Parse(s, -1, p.c.Format)
	return one(t, d), err
}

func (p *exprParser) call(name string) (value, error) {
	var args []value
	var names []string
	for !p.accept(")") {
		save := p.s
		if n := p.word(); n != "" && p.accept("=>") {
			names = append(names, n)
		} else {
			p.s = save
		}
		v, err := p.expression()
		if err != nil {
			return value{}, err
		}
		args = append(args, v)
		if !p.accept(",") && !strings.HasPrefix(strings.TrimLeft(p.s, " "), ")") {
			return value{}, fmt.Errorf("no , in %q", p.s)
		}
	}
	return applyFunc(p.c, name, args, names)
}

func castValue(c *Ctx, v value, t datum.Type, ctx CastContext) (value, error) {
	conv, err := BindCast(v.typ, t, ctx)
	if err != nil {
		return value{}, err
	}
	out := value{typ: t}
	for _, d := range v.rows {
		if conv != nil && !d.IsNull() {
			if d, err = conv(c, d); err != nil {
				return value{}, err
			}
		}
		out.rows = append(out.rows, d)
	}
	return out, nil
}

func applyOperator(c *Ctx, name string, left, right *value) (value, error) {
	var lt datum.Type
	actual := []datum.Type{right.typ}
	args := []value{*right}
	if left != nil {
		lt = left.typ
		actual, args = []datum.Type{lt, right.typ}, []value{*left, *right}
	}
	op, err := ResolveOperator(name, lt, right.typ)
	if err != nil {
		return value{}, err
	}
	declared := []*datum.Desc{op.Right}
	if left != nil {
		declared = []*datum.Desc{op.Left, op.Right}
	}
	return invoke(c, op.Func, declared, actual, args)
}

func applyFunc(c *Ctx, name string, args []value, names []string) (value, error) {
	actual := make([]datum.Type, len(args))
	for i := range args {
		actual[i] = args[i].typ
	}
	f, m, err := ResolveFunc(name, actual, names)
	if len(args) == 1 && !m.Exact {
		if d, ok := CastFunc(name, actual[0]); ok {
			return castValue(c, args[0], datum.T(d), Explicit)
		}
	}
	if err != nil {
		return value{}, err
	}
	if m.Order != nil || len(m.Missing) > 0 {
		ordered := make([]value, len(m.Args))
		for i := range args {
			p := i
			if m.Order != nil {
				p = m.Order[i]
			}
			ordered[p] = args[i]
		}
		for _, p := range m.Missing {
			ordered[p] = one(f.Args[p], f.DefaultArgs[p-len(f.Args)+f.Defaults])
		}
		args = ordered
		actual = actual[:0]
		for i := range args {
			actual = append(actual, args[i].typ)
		}
	}
	if m.Collect > 0 && f.Args[len(f.Args)-1] != datum.Any {
		return collectVariadic(c, f, m, actual, args)
	}
	return invoke(c, f, m.Args, actual, args)
}

// collectVariadic makes the array of a variadic call.
func collectVariadic(c *Ctx, f *Func, m Match, actual []datum.Type, args []value) (value, error) {
	types, _, err := ResolvePolymorphic(m.Args, f.Ret, actual)
	if err != nil {
		return value{}, err
	}
	n := len(f.Args) - 1
	var elems []datum.Datum
	for i := n; i < len(args); i++ {
		v, err := castValue(c, args[i], types[i], Implicit)
		if err != nil {
			return value{}, err
		}
		elems = append(elems, v.rows[0])
	}
	array := one(types[n].Array, datum.MakeArray(types[n].Desc, elems))
	return invoke(c, f, f.Args, append(actual[:n:n], array.typ), append(args[:n:n], array))
}

func invoke(c *Ctx, f *Func, declared []*datum.Desc, actual []datum.Type, args []value) (value, error) {
	types, ret, err := ResolvePolymorphic(declared, f.Ret, actual)
	if err != nil {
		return value{}, err
	}
	row := make([]datum.Datum, len(args))
	for i := range args {
		if types[i].Desc == datum.Any {
			types[i] = args[i].typ
			if types[i].Desc == datum.Unknown {
				types[i] = datum.T(datum.Text)
			}
		}
		v, err := castValue(c, args[i], types[i], Implicit)
		if err != nil {
			return value{}, err
		}
		row[i] = v.rows[0]
	}
	if f.Strict && !f.RetSet {
		for _, d := range row {
			if d.IsNull() {
				return value{ret, []datum.Datum{datum.Null}}, nil
			}
		}
	}
	if f.RetSet {
		return invokeSet(c, f, types, ret, row)
	}
	eval, err := f.BindEval(types, ret)
	if err != nil {
		return value{}, err
	}
	d, err := eval(c, row)
	return value{ret, []datum.Datum{d}}, err
}

func invokeSet(c *Ctx, f *Func, types []datum.Type, ret datum.Type, row []datum.Datum) (value, error) {
	set, cols, err := f.BindRows(types, ret)
	if err != nil {
		return value{}, err
	}
	for _, d := range row {
		if f.Strict && d.IsNull() {
			return value{typ: ret}, nil
		}
	}
	out := value{typ: ret}
	err = set(c, row, func(vals []datum.Datum) error {
		if len(cols) == 1 {
			out.rows = append(out.rows, datum.Clone(vals[0]))
			return nil
		}
		fields := make([]datum.Type, len(cols))
		for i, col := range cols {
			fields[i] = col.Type
		}
		out.rows = append(out.rows, datum.MakeRecord(fields, vals))
		return nil
	})
	return out, err
}
