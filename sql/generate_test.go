package sql_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A generator writes random statements that both engines must answer alike: no
// clock, no random function, no order that the statement leaves open.

// kind is a type that the generator knows.
type kind string

const (
	kInt   kind = "int4"
	kBig   kind = "int8"
	kNum   kind = "numeric"
	kText  kind = "text"
	kBool  kind = "bool"
	kDate  kind = "date"
	kFloat kind = "float8"
	kTime  kind = "timestamp"
	kJSON  kind = "jsonb"
	kArray kind = "int4[]"
)

var kinds = []kind{kInt, kInt, kInt, kInt, kText, kText, kText, kBool, kBool, kNum, kNum, kBig, kBig, kDate, kFloat, kTime, kJSON, kArray}

type genColumn struct {
	ref  string
	kind kind
}

// genScope is what can be referred to; outer queries are reached by correlation.
type genScope struct {
	cols  []genColumn
	outer *genScope
}

type generator struct {
	r     *rand.Rand
	alias int
	// ctes of the statement that is being written.
	ctes []genTable
}

type genTable struct {
	name string
	cols []genColumn
}

var genTables = []genTable{
	{"t1", []genColumn{{"id", kInt}, {"a", kInt}, {"b", kInt}, {"s", kText}, {"n", kNum}, {"d", kDate}, {"f", kBool}, {"j", kJSON}}},
	{"t2", []genColumn{{"k", kText}, {"a", kInt}, {"g", kBig}, {"x", kFloat}, {"s", kText}, {"ts", kTime}}},
	{"t3", []genColumn{{"p", kInt}, {"q", kInt}, {"v", kNum}, {"w", kText}, {"d", kDate}, {"g", kBig}, {"r", kArray}}},
}

// schema makes the tables.
func (g *generator) schema() []string {
	return []string{
		"create table t1 (id int primary key, a int, b int, s text, n numeric, d date, f bool, j jsonb)",
		"create index t1_a on t1 (a, b desc)",
		"create index t1_s on t1 (s)",
		"create table t2 (k text primary key, a int, g bigint, x float8, s text, ts timestamp)",
		"create unique index t2_g on t2 (g)",
		"create table t3 (p int, q int, v numeric, w text, d date, g bigint, r int[], primary key (p, q))",
		"create index t3_d on t3 (d desc nulls last, w)",
		"create index t3_q on t3 (q)",
	}
}

// data fills the tables.
func (g *generator) data() []string {
	var out []string
	for i := range 14 {
		out = append(out, fmt.Sprintf("insert into t1 values (%d, %s, %s, %s, %s, %s, %s, %s)", i-2,
			g.maybeNull(kInt), g.maybeNull(kInt), g.maybeNull(kText), g.maybeNull(kNum), g.maybeNull(kDate), g.maybeNull(kBool), g.maybeNull(kJSON)))
	}
	for i := range 9 {
		out = append(out, fmt.Sprintf("insert into t2 values ('%c', %s, %d, %s, %s, %s)", 'a'+i, g.maybeNull(kInt), i*i-10,
			g.maybeNull(kFloat), g.maybeNull(kText), g.maybeNull(kTime)))
	}
	for p := range 4 {
		for q := range 4 {
			if g.one(4) {
				continue
			}
			out = append(out, fmt.Sprintf("insert into t3 values (%d, %d, %s, %s, %s, %s, %s)", p, q,
				g.maybeNull(kNum), g.maybeNull(kText), g.maybeNull(kDate), g.maybeNull(kBig), g.maybeNull(kArray)))
		}
	}
	return out
}

func (g *generator) one(n int) bool { return g.r.IntN(n) == 0 }

func pickOne[T any](g *generator, list ...T) T { return list[g.r.IntN(len(list))] }

func (g *generator) maybeNull(k kind) string {
	if g.one(4) {
		return "null"
	}
	return g.literal(k)
}

func (g *generator) literal(k kind) string {
	switch k {
	case kInt:
		return fmt.Sprint(g.r.IntN(12) - 3)
	case kBig:
		return fmt.Sprintf("%d::bigint", pickOne(g, int64(0), 1, 5, -7, 1<<33, 12))
	case kNum:
		return pickOne(g, "1.5", "0.25", "-2.50", "100.00", "3", "7.125", "0.0") + "::numeric"
	case kText:
		return "'" + pickOne(g, "a", "b", "ab", "abc", "", "B", "zz top", "a%", "zz", "1", "x_y", " pad ") + "'"
	case kBool:
		return pickOne(g, "true", "false")
	case kDate:
		return "date '" + pickOne(g, "2024-01-31", "2024-02-29", "2023-12-31", "2024-01-01", "1999-07-04") + "'"
	}
	switch k {
	case kTime:
		return "timestamp '" + pickOne(g, "2024-01-31 10:20:30", "2024-02-29 23:59:59.5", "1999-12-31", "2024-01-01 00:00:00.000001") + "'"
	case kJSON:
		return "'" + pickOne(g, `{"a": 1, "b": [1, null, "x"]}`, `[1, 2.50, {"a": "y"}]`, `"abc"`, `1.0`, `null`, `{}`, `[]`, `{"b": {"a": true}}`) + "'::jsonb"
	case kArray:
		return "'" + pickOne(g, "{1,2,3}", "{}", "{5}", "{1,NULL,-3}", "{0,0}") + "'::int[]"
	}
	return pickOne(g, "0.5", "2", "-1.25", "100", "0") + "::float8"
}

// expr writes an expression of a kind.
func (g *generator) expr(k kind, s *genScope, depth int) string {
	if g.one(400) { // a wrong type now and then: the errors must agree too
		k = kinds[g.r.IntN(len(kinds))]
	}
	if depth <= 0 || g.one(5) {
		return g.leaf(k, s)
	}
	d := depth - 1
	switch g.r.IntN(12) {
	case 0:
		return fmt.Sprintf("case when %s then %s else %s end", g.expr(kBool, s, d), g.expr(k, s, d), g.expr(k, s, d))
	case 1:
		return fmt.Sprintf("coalesce(%s, %s)", g.expr(k, s, d), g.expr(k, s, d))
	case 2:
		return fmt.Sprintf("nullif(%s, %s)", g.expr(k, s, d), g.expr(k, s, d))
	case 3:
		if g.one(2) {
			return "(" + g.scalarQuery(k, s, d) + ")"
		}
	case 4:
		if k != kBool {
			return fmt.Sprintf("%s(%s, %s)", pickOne(g, "greatest", "least"), g.expr(k, s, d), g.expr(k, s, d))
		}
	case 5:
		return fmt.Sprintf("case %s when %s then %s when %s then %s end", g.expr(kInt, s, d), g.literal(kInt), g.expr(k, s, d), g.expr(kInt, s, d), g.expr(k, s, d))
	}
	return g.ofKind(k, s, d)
}

func (g *generator) leaf(k kind, s *genScope) string {
	var fits []string
	for at, first := s, true; at != nil; at, first = at.outer, false {
		if !first && g.one(2) {
			break
		}
		for _, c := range at.cols {
			if c.kind == k {
				fits = append(fits, c.ref)
			}
		}
	}
	if len(fits) > 0 && !g.one(3) {
		return pickOne(g, fits...)
	}
	if g.one(12) {
		return "null::" + string(k)
	}
	return g.literal(k)
}

func (g *generator) ofKind(k kind, s *genScope, d int) string {
	e := func(k kind) string { return g.expr(k, s, d) }
	switch k {
	case kTime, kJSON, kArray:
		return g.ofComposite(k, s, d)
	case kInt:
		switch g.r.IntN(11) {
		case 8:
			return fmt.Sprintf("cardinality(%s)", e(kArray))
		case 9:
			return fmt.Sprintf("(%s)[%s]", e(kArray), g.literal(kInt))
		case 10:
			return fmt.Sprintf("array_position(%s, %s)", e(kArray), e(kInt))
		case 0:
			return fmt.Sprintf("(%s %s %s)", e(kInt), pickOne(g, "+", "-", "*"), e(kInt))
		case 1:
			return fmt.Sprintf("(%s %s nullif(%s, 0))", e(kInt), pickOne(g, "/", "%"), e(kInt))
		case 2:
			return fmt.Sprintf("length(%s)", e(kText))
		case 3:
			return fmt.Sprintf("abs(%s)", e(kInt))
		case 4:
			return fmt.Sprintf("(%s - %s)", e(kDate), e(kDate))
		case 5:
			return fmt.Sprintf("(- %s)", e(kInt))
		case 6:
			return fmt.Sprintf("position(%s in %s)", e(kText), e(kText))
		case 7:
			return fmt.Sprintf("(%s)::int", e(kBool))
		}
		return fmt.Sprintf("(%s %s %s)", e(kInt), pickOne(g, "&", "|", "#"), e(kInt))
	case kBig:
		switch g.r.IntN(4) {
		case 0:
			return fmt.Sprintf("(%s %s %s)", e(kBig), pickOne(g, "+", "-"), e(kInt))
		case 1:
			return fmt.Sprintf("(%s)::bigint", e(kInt))
		case 2:
			return fmt.Sprintf("(%s %% nullif(%s, 0))", e(kBig), e(kBig))
		}
		return fmt.Sprintf("abs(%s)", e(kBig))
	case kNum:
		switch g.r.IntN(7) {
		case 0:
			return fmt.Sprintf("(%s %s %s)", e(kNum), pickOne(g, "+", "-", "*"), e(kNum))
		case 1:
			return fmt.Sprintf("(%s %s %s)", e(kNum), pickOne(g, "+", "-", "*"), e(kInt))
		case 2:
			return fmt.Sprintf("(%s / nullif(%s, 0))", e(kNum), e(kNum))
		case 3:
			return fmt.Sprintf("%s(%s)", pickOne(g, "round", "trunc", "ceil", "floor", "abs", "sign"), e(kNum))
		case 4:
			return fmt.Sprintf("round(%s, %d)", e(kNum), g.r.IntN(5)-1)
		case 5:
			return fmt.Sprintf("(%s)::numeric(12,%d)", e(kNum), g.r.IntN(4))
		}
		if g.one(2) {
			return fmt.Sprintf("extract(%s from %s)", pickOne(g, "hour", "second", "epoch", "week", "milliseconds"), e(kTime))
		}
		return fmt.Sprintf("extract(%s from %s)", pickOne(g, "year", "month", "day", "dow", "doy", "quarter"), e(kDate))
	case kText:
		switch g.r.IntN(16) {
		case 12:
			return fmt.Sprintf("(%s ->> %s)", e(kJSON), pickOne(g, "'a'", "'b'", "0", "-1"))
		case 13:
			return fmt.Sprintf("jsonb_typeof(%s)", e(kJSON))
		case 14:
			return fmt.Sprintf("array_to_string(%s, ',', '-')", e(kArray))
		case 0:
			return fmt.Sprintf("(%s || %s)", e(kText), e(kText))
		case 1:
			return fmt.Sprintf("%s(%s)", pickOne(g, "upper", "lower", "trim", "reverse", "initcap", "md5"), e(kText))
		case 2:
			return fmt.Sprintf("substr(%s, %s)", e(kText), g.literal(kInt))
		case 3:
			return fmt.Sprintf("substring(%s from %d for %d)", e(kText), g.r.IntN(4), g.r.IntN(4))
		case 4:
			return fmt.Sprintf("replace(%s, %s, %s)", e(kText), g.literal(kText), e(kText))
		case 5:
			return fmt.Sprintf("left(%s, %s)", e(kText), g.literal(kInt))
		case 6:
			return fmt.Sprintf("%s(%s, %d, %s)", pickOne(g, "lpad", "rpad"), e(kText), g.r.IntN(6), pickOne(g, "'*'", "'xy'"))
		case 7:
			return fmt.Sprintf("(%s)::text", e(kinds[g.r.IntN(len(kinds))]))
		case 8:
			return fmt.Sprintf("(%s || %s)", e(kText), e(kInt))
		case 9:
			return fmt.Sprintf("concat(%s, %s, %s)", e(kText), e(kInt), e(kBool))
		case 10:
			return fmt.Sprintf("split_part(%s, %s, 1)", e(kText), pickOne(g, "'a'", "' '", "'_'"))
		case 11:
			return fmt.Sprintf("repeat(%s, %d)", e(kText), g.r.IntN(3))
		}
		return fmt.Sprintf("to_char(%s, %s)", e(kDate), pickOne(g, "'YYYY-MM-DD'", "'Mon DD'", "'Q'"))
	case kDate:
		switch g.r.IntN(3) {
		case 0:
			return fmt.Sprintf("(%s %s %s)", e(kDate), pickOne(g, "+", "-"), e(kInt))
		case 1:
			return fmt.Sprintf("(%s)::date", "("+e(kDate)+" + interval '"+pickOne(g, "1 month", "1 year", "3 days", "-1 month 2 days")+"')")
		}
		return fmt.Sprintf("date_trunc('%s', %s)::date", pickOne(g, "month", "year", "week", "quarter"), e(kDate))
	case kFloat:
		switch g.r.IntN(4) {
		case 0:
			return fmt.Sprintf("(%s %s %s)", e(kFloat), pickOne(g, "+", "-", "*"), e(kFloat))
		case 1:
			return fmt.Sprintf("(%s)::float8", e(kInt))
		case 2:
			return fmt.Sprintf("%s(%s)", pickOne(g, "abs", "floor", "ceil", "round", "trunc"), e(kFloat))
		}
		return fmt.Sprintf("(%s / nullif(%s, 0))", e(kFloat), e(kFloat))
	}
	return g.condition(s, d)
}

func (g *generator) ofComposite(k kind, s *genScope, d int) string {
	e := func(k kind) string { return g.expr(k, s, d) }
	switch k {
	case kTime:
		return pickOne(g,
			fmt.Sprintf("(%s + interval '%s')", e(kTime), pickOne(g, "1 month", "1 day 02:03:04", "-1 year", "90 minutes")),
			fmt.Sprintf("(%s)::timestamp", e(kDate)),
			fmt.Sprintf("date_trunc('%s', %s)", pickOne(g, "hour", "day", "month", "minute", "decade"), e(kTime)))
	case kJSON:
		return pickOne(g,
			fmt.Sprintf("(%s -> %s)", e(kJSON), pickOne(g, "'a'", "'b'", "0", "-1")),
			fmt.Sprintf("(%s #> %s)", e(kJSON), pickOne(g, "'{a}'", "'{b,0}'", "'{2,a}'", "'{}'")),
			fmt.Sprintf("to_jsonb(%s)", e(kinds[g.r.IntN(len(kinds))])),
			fmt.Sprintf("jsonb_build_object('a', %s, 'z', %s)", e(kInt), e(kText)),
			fmt.Sprintf("jsonb_build_array(%s, %s)", e(kNum), e(kBool)))
	}
	return pickOne(g,
		fmt.Sprintf("array[%s, %s]", e(kInt), e(kInt)),
		fmt.Sprintf("(%s || %s)", e(kArray), e(kInt)),
		fmt.Sprintf("(%s || %s)", e(kArray), e(kArray)),
		fmt.Sprintf("array_remove(%s, %s)", e(kArray), e(kInt)),
		fmt.Sprintf("(%s)[%d:%d]", e(kArray), g.r.IntN(3), g.r.IntN(4)),
		fmt.Sprintf("array(%s)", g.query([]kind{kInt}, s, d-1, false)+" order by 1"))
}

// condition writes an expression of type boolean.
func (g *generator) condition(s *genScope, d int) string {
	k := kinds[g.r.IntN(len(kinds))]
	e := func(k kind) string { return g.expr(k, s, d) }
	switch g.r.IntN(20) {
	case 15:
		return fmt.Sprintf("(%s %s %s)", e(kJSON), pickOne(g, "@>", "<@"), e(kJSON))
	case 16:
		return fmt.Sprintf("(%s %s %s)", e(kArray), pickOne(g, "@>", "<@", "&&"), e(kArray))
	case 17:
		return fmt.Sprintf("((%s, %s) in (%s))", e(kInt), e(kText), g.query([]kind{kInt, kText}, s, d-1, false))
	case 18:
		return fmt.Sprintf("(%s = (%s))", e(k), g.scalarQuery(k, s, d-1))
	case 0, 1:
		return fmt.Sprintf("(%s and %s)", e(kBool), e(kBool))
	case 2:
		return fmt.Sprintf("(%s or %s)", e(kBool), e(kBool))
	case 3:
		return fmt.Sprintf("(not %s)", e(kBool))
	case 4:
		return fmt.Sprintf("(%s is %snull)", e(k), pickOne(g, "", "not "))
	case 5:
		return fmt.Sprintf("(%s %sin (%s, %s, %s))", e(k), pickOne(g, "", "not "), e(k), g.literal(k), g.maybeNull(k))
	case 6:
		return fmt.Sprintf("(%s %sbetween %s%s and %s)", e(k), pickOne(g, "", "not "), pickOne(g, "", "", "symmetric "), e(k), e(k))
	case 7:
		return fmt.Sprintf("(%s %slike %s)", e(kText), pickOne(g, "", "not ", "i", "not i"), pickOne(g, "'a%'", "'%b%'", "'_'", "'%'", "'a\\%'", "''"))
	case 8:
		return fmt.Sprintf("(%s %sin (%s))", e(k), pickOne(g, "", "not "), g.query([]kind{k}, s, d-1, false))
	case 9:
		return fmt.Sprintf("%sexists (%s)", pickOne(g, "", "not "), g.query(nil, s, d-1, false))
	case 10:
		return fmt.Sprintf("(%s is %sdistinct from %s)", e(k), pickOne(g, "", "not "), e(k))
	case 11:
		return fmt.Sprintf("(%s is %s%s)", e(kBool), pickOne(g, "", "not "), pickOne(g, "true", "false", "unknown"))
	case 12:
		return fmt.Sprintf("(%s %s %s (%s))", e(k), pickOne(g, "=", "<", ">=", "<>"), pickOne(g, "any", "all"), g.query([]kind{k}, s, d-1, false))
	case 13:
		k2 := kinds[g.r.IntN(len(kinds))]
		return fmt.Sprintf("((%s, %s) %s (%s, %s))", e(k), e(k2), pickOne(g, "=", "<", ">", "<>"), e(k), e(k2))
	case 14:
		return fmt.Sprintf("(%s = any (array[%s, %s]))", e(k), e(k), e(k))
	}
	return fmt.Sprintf("(%s %s %s)", e(k), pickOne(g, "=", "<", "<=", ">", ">=", "<>"), e(k))
}

// scalarQuery writes a subquery that gives at most one row.
func (g *generator) scalarQuery(k kind, s *genScope, d int) string {
	from, in := g.from(s, d-1, 2)
	all := in
	if !g.one(10) { // an aggregate over outer columns belongs to the outer query
		in = &genScope{cols: in.cols}
	}
	agg := ""
	switch k {
	case kInt:
		agg = pickOne(g, "max", "min") + "(" + g.expr(kInt, in, d) + ")"
	case kBig:
		agg = pickOne(g, "count(*)", "sum("+g.expr(kInt, in, d)+")", "count(distinct "+g.expr(kText, in, d)+")")
	case kNum:
		agg = pickOne(g, "sum", "avg", "max") + "(" + g.expr(kNum, in, d) + ")"
	case kBool:
		agg = pickOne(g, "bool_and", "bool_or") + "(" + g.expr(kBool, in, d) + ")"
	case kJSON, kArray:
		if k == kArray {
			x := g.expr(kInt, in, d)
			agg = "array_agg(" + x + " order by " + x + ")"
		} else {
			x := "(" + g.expr(kText, in, d) + ")::text"
			agg = "jsonb_agg(" + x + " order by " + x + ")"
		}
	default:
		agg = pickOne(g, "max", "min") + "(" + g.expr(k, in, d) + ")"
	}
	q := "select " + agg + " from " + from
	if g.one(2) {
		q += " where " + g.condition(all, d)
	}
	return q
}

// from writes a FROM list of up to n items.
func (g *generator) from(outer *genScope, d, n int) (string, *genScope) {
	s := &genScope{outer: outer}
	text := g.fromItem(s, outer, d, false)
	for range g.r.IntN(n) {
		switch g.r.IntN(8) {
		case 0:
			text += ", " + g.fromItem(s, outer, d, false)
		case 1:
			text += " cross join " + g.fromItem(s, outer, d, false)
		case 2:
			left := &genScope{cols: s.cols, outer: outer}
			text += pickOne(g, " cross join lateral ", ", lateral ") + g.fromItem(s, left, d, true)
		case 3:
			text += " full join " + g.fromItem(s, outer, d, false)
			text += " on " + g.equality(s)
		case 4:
			if t := g.usingJoin(s, text); t != "" {
				text += t
			}
		default:
			text += pickOne(g, " join ", " left join ", " right join ", " left join ") + g.fromItem(s, outer, d, false)
			switch g.r.IntN(5) {
			case 0:
				text += " on " + g.condition(s, min(d, 1))
			case 1:
				text += " on " + g.equality(s) + " and " + g.condition(s, 0)
			default:
				text += " on " + g.equality(s)
			}
		}
	}
	return text, s
}

// usingJoin joins a table by a column that exactly one item has under its name.
func (g *generator) usingJoin(s *genScope, text string) string {
	if strings.Contains(text, " using ") {
		return ""
	}
	g.alias++
	t, name := pickOne(g, genTables...), fmt.Sprintf("r%d", g.alias)
	for _, c := range t.cols {
		n := 0
		for _, o := range s.cols {
			if _, col, _ := strings.Cut(o.ref, "."); col == c.ref {
				n++
				if o.kind != c.kind {
					n = 2
				}
			}
		}
		if n != 1 {
			continue
		}
		for _, o := range t.cols {
			s.cols = append(s.cols, genColumn{name + "." + o.ref, o.kind})
		}
		s.cols = append(s.cols, genColumn{c.ref, c.kind}, genColumn{c.ref, c.kind})
		return fmt.Sprintf(" %sjoin %s as %s using (%s)", pickOne(g, "", "left ", "right ", "full "), t.name, name, c.ref)
	}
	return ""
}

// equality writes column = column between what is in scope.
func (g *generator) equality(s *genScope) string {
	for range 20 {
		a, b := pickOne(g, s.cols...), pickOne(g, s.cols...)
		if a.kind == b.kind && a.ref != b.ref && prefix(a.ref) != prefix(b.ref) {
			return a.ref + " = " + b.ref
		}
	}
	return "true"
}

func prefix(ref string) string {
	p, _, _ := strings.Cut(ref, ".")
	return p
}

func (g *generator) fromItem(s *genScope, outer *genScope, d int, lateral bool) string {
	g.alias++
	name := fmt.Sprintf("r%d", g.alias)
	add := func(cols []genColumn) {
		for _, c := range cols {
			s.cols = append(s.cols, genColumn{name + "." + c.ref, c.kind})
		}
	}
	choice := g.r.IntN(10)
	switch {
	case lateral || choice == 0 && d > 0:
		want := g.someKinds(3)
		see := outer
		if !lateral && outer != nil {
			see = outer
		}
		q := g.query(want, see, max(d-1, 0), true)
		var cols []genColumn
		var names []string
		for i, k := range want {
			cols = append(cols, genColumn{fmt.Sprintf("c%d", i), k})
			names = append(names, fmt.Sprintf("c%d", i))
		}
		add(cols)
		return fmt.Sprintf("(%s) as %s(%s)", q, name, strings.Join(names, ", "))
	case choice == 1:
		k := kinds[g.r.IntN(len(kinds))]
		add([]genColumn{{"u", kInt}, {"v", k}})
		return fmt.Sprintf("(values (%s, %s), (%s, %s), (%s, %s::%s)) as %s(u, v)", g.literal(kInt), g.literal(k),
			g.literal(kInt), g.literal(k), g.literal(kInt), g.maybeNull(k), k, name)
	case choice == 2:
		add([]genColumn{{"i", kInt}})
		return fmt.Sprintf("generate_series(%d, %d) as %s(i)", g.r.IntN(3), g.r.IntN(5), name)
	case choice == 3 && len(g.ctes) > 0:
		c := pickOne(g, g.ctes...)
		add(c.cols)
		return c.name + " as " + name
	}
	t := pickOne(g, genTables...)
	add(t.cols)
	return t.name + " as " + name
}

func (g *generator) someKinds(n int) []kind {
	out := make([]kind, 1+g.r.IntN(n))
	for i := range out {
		out[i] = kinds[g.r.IntN(len(kinds))]
	}
	return out
}

// query writes a SELECT with columns of the wanted kinds (nil: any), without an
// order; ordered adds a total one with a LIMIT now and then.
func (g *generator) query(want []kind, outer *genScope, d int, limited bool) string {
	if want == nil {
		want = g.someKinds(2)
	}
	var q string
	switch {
	case g.one(8) && d > 0:
		q = fmt.Sprintf("%s %s %s", g.simple(want, outer, d-1), pickOne(g, "union", "union all", "intersect", "except", "intersect all", "except all"), g.simple(want, outer, d-1))
	default:
		q = g.simple(want, outer, d)
	}
	if limited && g.one(3) {
		q += g.total(len(want)) + fmt.Sprintf(" limit %d", g.r.IntN(4))
		if g.one(3) {
			q += " offset 1"
		}
	}
	return q
}

// total writes an ORDER BY over all output columns.
func (g *generator) total(n int) string {
	keys := make([]string, n)
	for i, j := range g.r.Perm(n) {
		keys[i] = fmt.Sprint(j+1) + pickOne(g, "", "", " desc", " nulls first", " desc nulls last")
	}
	return " order by " + strings.Join(keys, ", ")
}

func (g *generator) simple(want []kind, outer *genScope, d int) string {
	if g.one(15) {
		return g.selectOnly(want, outer, d)
	}
	from, s := g.from(outer, d, 3)
	if g.one(4) {
		return g.grouped(want, from, s, d)
	}
	if g.one(20) {
		// The order decides which row stays: all columns, the key first.
		g.alias++
		return fmt.Sprintf("select * from (select distinct on (1) %s from %s%s) as r%d", g.list(want, s, d), from, g.orderedFrom(len(want)), g.alias)
	}
	q := "select " + pickOne(g, "", "", "", "distinct ") + g.list(want, s, d) + " from " + from
	if !g.one(3) {
		q += " where " + g.condition(s, d)
	}
	return q
}

func (g *generator) orderedFrom(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(i + 1)
	}
	return " order by " + strings.Join(keys, ", ")
}

func (g *generator) selectOnly(want []kind, outer *genScope, d int) string {
	return "select " + g.list(want, &genScope{outer: outer}, d)
}

func (g *generator) list(want []kind, s *genScope, d int) string {
	parts := make([]string, len(want))
	for i, k := range want {
		parts[i] = g.expr(k, s, d)
	}
	return strings.Join(parts, ", ")
}

// grouped writes GROUP BY with keys that are columns, and aggregates.
func (g *generator) grouped(want []kind, from string, s *genScope, d int) string {
	var keys []genColumn
	for range g.r.IntN(3) {
		keys = append(keys, pickOne(g, s.cols...))
	}
	above := &genScope{cols: keys, outer: s.outer}
	parts := make([]string, len(want))
	for i, k := range want {
		if g.one(2) {
			parts[i] = g.expr(k, above, d)
		} else {
			parts[i] = g.aggregate(k, s, d)
		}
	}
	q := "select " + strings.Join(parts, ", ") + " from " + from
	if g.one(2) {
		q += " where " + g.condition(s, d)
	}
	if len(keys) > 0 {
		refs := make([]string, len(keys))
		for i, k := range keys {
			refs[i] = k.ref
		}
		q += " group by " + strings.Join(refs, ", ")
	}
	if g.one(3) || len(keys) == 0 {
		q += fmt.Sprintf(" having %s %s %d", pickOne(g, "count(*)", "count("+g.expr(kInt, &genScope{cols: s.cols}, 1)+")"), pickOne(g, ">", "<>", "<="), g.r.IntN(3))
	}
	return q
}

func (g *generator) aggregate(k kind, s *genScope, d int) string {
	if !g.one(10) { // an aggregate over outer columns belongs to the outer query
		s = &genScope{cols: s.cols}
	}
	arg := func(k kind) string { return g.expr(k, s, min(d, 1)) }
	filter := ""
	if g.one(5) {
		filter = " filter (where " + g.condition(s, 0) + ")"
	}
	switch k {
	case kInt:
		return pickOne(g, "max", "min", "bit_and", "bit_or") + "(" + arg(kInt) + ")" + filter
	case kBig:
		return pickOne(g, "count(*)", "count("+arg(kText)+")", "sum("+arg(kInt)+")", "count(distinct "+arg(kInt)+")") + filter
	case kNum:
		return pickOne(g, "sum", "avg", "max", "min", "sum", "variance") + "(" + arg(kNum) + ")" + filter
	case kBool:
		return pickOne(g, "bool_and", "bool_or", "every") + "(" + arg(kBool) + ")" + filter
	case kText:
		x := arg(kText)
		return pickOne(g, "max("+x+")", "min("+x+")", "string_agg("+x+", ',' order by "+x+")", "string_agg(distinct "+x+", ',')", "array_agg("+x+" order by "+x+" desc)::text") + filter
	}
	switch k {
	case kArray:
		x := arg(kInt)
		distinct := ""
		if g.one(2) && !strings.Contains(x, "select") {
			distinct = "distinct "
		}
		return "array_agg(" + distinct + x + " order by " + x + ")" + filter
	case kJSON:
		x := "(" + arg(kText) + ")::text"
		return "jsonb_agg(" + x + " order by " + x + ")" + filter
	}
	return pickOne(g, "max", "min") + "(" + arg(k) + ")" + filter
}

// statement writes a whole statement. ordered tells that its rows come in an
// order that both engines must agree on.
func (g *generator) statement() (text string, ordered bool) {
	g.alias, g.ctes = 0, nil
	d := pickOne(g, 0, 1, 1, 1, 2, 2, 3)
	with := ""
	if g.one(6) {
		want := g.someKinds(2)
		var cols []genColumn
		var names []string
		for i, k := range want {
			names = append(names, fmt.Sprintf("w%d", i))
			cols = append(cols, genColumn{names[i], k})
		}
		with = fmt.Sprintf("with c(%s) as (%s) ", strings.Join(names, ", "), g.query(want, nil, d, true))
		g.ctes = []genTable{{"c", cols}}
	}
	want := g.someKinds(3)
	text = with + g.query(want, nil, d, false)
	if g.one(2) {
		return text, false
	}
	text += g.total(len(want))
	if g.one(3) {
		text += fmt.Sprintf(" limit %d", g.r.IntN(6))
	}
	if g.one(6) {
		text += fmt.Sprintf(" offset %d", g.r.IntN(3))
	}
	return text, true
}
