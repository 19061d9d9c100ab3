package contracts_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// writer makes random functions f(a int, b int) RETURNS text over table t.
// They end: loops are bounded.
type writer struct {
	rng   *rand.Rand
	out   strings.Builder
	depth int
	made  int      // numbers loops and their variables
	loops []string // labels of the loops around
	recs  []string // record variables of the loops around
}

func (w *writer) line(format string, args ...any) {
	w.out.WriteString(strings.Repeat("  ", w.depth))
	fmt.Fprintf(&w.out, format+"\n", args...)
}

func (w *writer) pick(list ...string) string { return list[w.rng.IntN(len(list))] }

// number writes an integer expression. It may fail when evaluated; it has no
// part that PostgreSQL computes beforehand, which would change the context of
// errors.
func (w *writer) number(depth int) string {
	if depth <= 0 || w.rng.IntN(3) == 0 {
		list := []string{"a", "b", "c", "z", "length(s)", fmt.Sprint(w.rng.IntN(9) - 2)}
		for _, r := range w.recs {
			list = append(list, r+".k", r+".v")
		}
		return w.pick(list...)
	}
	sub := func() string { return w.number(depth - 1) }
	switch w.rng.IntN(7) {
	case 0:
		return "(" + sub() + w.pick(" + ", " - ", " * ") + sub() + ")"
	case 1:
		return "(" + sub() + " / " + w.pick("a", "b", "(c - 1)", "(a - b)") + ")"
	case 2:
		return "coalesce(" + sub() + ", " + sub() + ")"
	case 3:
		return "(CASE WHEN " + w.condition(depth-1) + " THEN " + sub() + " ELSE " + sub() + " END)"
	case 4:
		return "(SELECT count(*)::int FROM t WHERE k > " + w.number(0) + ")"
	case 5:
		return "helper(" + sub() + ")"
	}
	return sub()
}

func (w *writer) condition(depth int) string {
	switch w.rng.IntN(5) {
	case 0:
		return "FOUND"
	case 1:
		return "(" + w.number(depth-1) + " IS NULL)"
	case 2:
		if depth > 0 {
			return "(" + w.condition(depth-1) + w.pick(" AND ", " OR ") + w.condition(depth-1) + ")"
		}
	}
	return "(" + w.number(depth-1) + w.pick(" < ", " = ", " > ", " <> ") + w.number(depth-1) + ")"
}

// inner writes a list of statements one level deeper.
func (w *writer) inner(most int) {
	w.depth++
	for range 1 + w.rng.IntN(most) {
		w.statement()
	}
	w.line("NULL;")
	w.depth--
}

func (w *writer) statement() {
	if w.depth > 4 {
		w.line("%s := %s;", w.pick("a", "b", "c"), w.number(1))
		return
	}
	switch w.rng.IntN(16) {
	case 0, 1:
		w.line("%s := %s;", w.pick("a", "b", "c"), w.number(2))
	case 2:
		w.line("s := %s;", w.pick("s || 'x'", "s || a::text", "left(s, 3)", "NULL", "concat(s, "+w.number(1)+")", "s || FOUND::text"))
	case 3:
		w.branches()
	case 4, 5:
		w.loop()
	case 6, 7:
		w.guarded()
	case 8:
		w.line("RAISE NOTICE '%% %% %%', a, %s, s;", w.number(1))
	case 9:
		if w.rng.IntN(3) == 0 {
			w.line("RAISE EXCEPTION 'boom %%', %s;", w.number(1))
		}
	case 10:
		if len(w.loops) > 0 {
			w.line("%s %s WHEN %s;", w.pick("EXIT", "CONTINUE"), w.pick(append(w.loops, "")...), w.condition(1))
		}
	case 11:
		if w.rng.IntN(4) == 0 {
			w.line("RETURN s || %s::text;", w.number(1))
		}
	case 12:
		w.line("GET DIAGNOSTICS c = ROW_COUNT;")
	default:
		w.change()
	}
}

func (w *writer) branches() {
	if w.rng.IntN(2) == 0 {
		w.line("IF %s THEN", w.condition(2))
		w.inner(2)
		w.line("ELSIF %s THEN", w.condition(1))
		w.inner(1)
		w.line("ELSE")
		w.inner(1)
		w.line("END IF;")
		return
	}
	w.line("CASE %s", w.number(1))
	w.line("WHEN %s, %s THEN", w.number(0), w.number(0))
	w.inner(1)
	if w.rng.IntN(3) > 0 {
		w.line("ELSE")
		w.inner(1)
	}
	w.line("END CASE;")
}

func (w *writer) loop() {
	w.made++
	n := w.made
	label := fmt.Sprintf("l%d", n)
	w.loops = append(w.loops, label)
	switch w.rng.IntN(3) {
	case 0:
		w.line("<<%s>>", label)
		w.line("FOR i%d IN %s%d..%d LOOP", n, w.pick("", "REVERSE "), w.rng.IntN(4), w.rng.IntN(4))
		w.inner(2)
		w.line("END LOOP;")
	case 1:
		w.line("DECLARE w%d int := 0; BEGIN", n)
		w.line("<<%s>>", label)
		w.line("WHILE w%d < 3 LOOP w%d := w%d + 1;", n, n, n)
		w.inner(2)
		w.line("END LOOP; END;")
	default:
		w.line("DECLARE r%d record; BEGIN", n)
		w.line("<<%s>>", label)
		w.line("FOR r%d IN SELECT k, v FROM t WHERE k %s %s ORDER BY k LOOP", n, w.pick("<", ">"), w.pick("a", "3"))
		w.recs = append(w.recs, fmt.Sprintf("r%d", n))
		w.inner(2)
		w.recs = w.recs[:len(w.recs)-1]
		w.line("END LOOP; END;")
	}
	w.loops = w.loops[:len(w.loops)-1]
}

func (w *writer) guarded() {
	w.line("BEGIN")
	w.inner(2)
	w.line("EXCEPTION WHEN %s THEN", w.pick("division_by_zero", "OTHERS", "raise_exception OR case_not_found",
		"SQLSTATE '22012'", "data_exception", "unique_violation", "not_null_violation"))
	w.line("  s := s || SQLSTATE || SQLERRM;")
	w.inner(1)
	if w.rng.IntN(6) == 0 {
		w.line("RAISE;")
	}
	w.line("END;")
}

func (w *writer) change() {
	key := w.pick("=", ">") + " " + w.pick("a", "b", "2")
	w.line("%s", w.pick(
		"INSERT INTO t VALUES ("+w.number(1)+", "+w.number(1)+");",
		"UPDATE t SET v = "+w.pick("v + 1", "coalesce(a, 0)", "v * coalesce(b, 1)")+" WHERE k "+key+";",
		"DELETE FROM t WHERE k = "+w.pick("a", "b", "3")+";",
		"SELECT k, v INTO "+w.pick("", "STRICT")+" a, b FROM t WHERE k "+key+" ORDER BY k;",
		"PERFORM k FROM t WHERE v = a;",
		"UPDATE t SET v = v + 1 WHERE k = b RETURNING v INTO c;",
		"EXECUTE 'SELECT $1 + v FROM t WHERE k = $2' INTO a USING b, c;",
		"EXECUTE 'UPDATE t SET v = coalesce($1, 5) WHERE k < 3' USING c;",
	))
}

func randomFunction(seed uint64, name string) string {
	w := &writer{rng: rand.New(rand.NewPCG(seed, 1)), depth: 1}
	for range 4 + w.rng.IntN(8) {
		w.statement()
	}
	return "CREATE FUNCTION " + name + "(a int, b int) RETURNS text LANGUAGE plpgsql AS $$\n" +
		"DECLARE c int := 1; z int; s text := '';\nBEGIN\n" + w.out.String() +
		"  RETURN concat_ws('|', a, b, c, s, FOUND);\nEND $$"
}

const randomSetup = `CREATE TABLE t (k int PRIMARY KEY, v int NOT NULL);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
CREATE FUNCTION helper(x int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF x = 3 THEN RAISE EXCEPTION 'helper %', x; END IF;
  UPDATE t SET v = v + 1 WHERE k = x;
  RETURN x + 1;
END $$;`

// TestRandomFunctions: random functions give the same result, notices, error
// and footprint whether their plans were made by calls before or not; with
// -postgres, also what PostgreSQL gives, and the same table.
func TestRandomFunctions(t *testing.T) {
	d := newDatabase(t)
	var ref *reference
	count := 60
	if *postgres != "" {
		ref, count = openReference(t), 400
		ref.run(randomSetup)
	}
	if out := d.run(randomSetup); out != "" {
		t.Fatal(out)
	}
	outcome := func(f *contracts.Functions, name string, args []datum.Datum) string {
		env := d.begin(f)
		defer env.Txn.Close()
		var notices strings.Builder
		env.Ctx.Notice = func(severity string, e *pgerr.Error) {
			fmt.Fprintf(&notices, "%s %s\n%s\n", severity, e.Message, e.Context)
		}
		v, err := call(env, name, args...)
		if err != nil {
			writeError(&notices, errorOf(t, err))
		} else if !v.IsNull() {
			notices.WriteString(v.Str())
		}
		return notices.String() + "\n" + footprint(env)
	}
	calls := [][]datum.Datum{
		{datum.Int(1), datum.Int(2)}, {datum.Int(0), datum.Null}, {datum.Int(3), datum.Int(3)}, {datum.Int(1), datum.Int(2)},
	}
	for seed := range count {
		name := fmt.Sprintf("f%d", seed)
		src := randomFunction(uint64(seed), name)
		if out := d.run(src); out != "" {
			t.Fatalf("seed %d: %s\n%s", seed, out, src)
		}
		shared := newFunctions()
		for _, args := range calls {
			if got, want := outcome(shared, name, args), outcome(newFunctions(), name, args); got != want {
				t.Fatalf("seed %d: gives\n%s\nwithout plans from before\n%s\n%s", seed, got, want, src)
			}
		}
		if ref != nil {
			compareRandom(t, d, ref, name, src)
		}
	}
}

func errorOf(t *testing.T, err error) *pgerr.Error {
	e, ok := pgerr.From(err)
	if !ok {
		t.Fatal(err)
	}
	return e
}

func compareRandom(t *testing.T, d *database, ref *reference, name, src string) {
	if out := ref.run(src); out != "" {
		t.Fatalf("PostgreSQL refuses: %s\n%s", out, src)
	}
	for _, args := range []string{"(1, 2)", "(0, NULL)", "(3, 3)"} {
		for _, sql := range []string{
			"SELECT " + name + args, "SELECT * FROM t ORDER BY k",
			"DELETE FROM t", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
		} {
			if ours, theirs := d.run(sql), ref.run(sql); ours != theirs {
				t.Fatalf("%s gives\n%s\nin PostgreSQL\n%s\n%s", sql, ours, theirs, src)
			}
		}
	}
}
