package contracts_test

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// begin makes an environment at the last block.
func (d *database) begin(functions *contracts.Functions) *exec.Env {
	txn := d.store.Begin(mvcc.AsOf(d.height), 1)
	cat, err := d.engine.Catalog(txn)
	if err != nil {
		d.t.Fatal(err)
	}
	env := d.engine.ContractEnv(txn, 1, cat, &builtin.TxInfo{})
	env.Functions = functions.Exec()
	env.Limits.Nesting = 100
	return env
}

func call(env *exec.Env, name string, args ...datum.Datum) (datum.Datum, error) {
	return env.Functions.Call(env, env.Catalog.Funcs(catalog.Blockchain, name)[0], args)
}

const mixedSetup = `
CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
CREATE FUNCTION double(a int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT a * 2';
CREATE FUNCTION mixed(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; s text := ''; x int;
BEGIN
  IF n % 2 = 0 THEN SELECT id, v INTO r FROM t WHERE id = n % 3 + 1;
  ELSE SELECT 'odd' AS v, n AS id INTO r; END IF;
  s := r.v || ':' || double(r.id);
  FOR r IN SELECT id FROM t WHERE v > 10 LOOP s := s || r.id; END LOOP;
  BEGIN
    UPDATE t SET v = v + n WHERE id = 1;
    IF n % 5 = 0 THEN RAISE EXCEPTION 'undo'; END IF;
  EXCEPTION WHEN raise_exception THEN s := s || SQLERRM;
  END;
  EXECUTE 'SELECT v FROM t WHERE id = $1' INTO x USING 1;
  RETURN s || x;
END $$;`

// footprint shows what a transaction read and wrote, as a set.
func footprint(env *exec.Env) string {
	set := map[string]bool{}
	fp := env.Txn.Footprint()
	fp.EachRead(func(r rwset.Read) bool {
		set[fmt.Sprintf("r %x-%x %v", r.Start, r.End, r.Existence)] = true
		return true
	})
	for _, w := range fp.Writes {
		set[fmt.Sprintf("w %x %v", w.Key, w.Liveness)] = true
	}
	var out []string
	for k := range set {
		out = append(out, k)
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

// TestCachesLeaveNoTrace: a call gives the same result and footprint with plans
// made before, by other calls, in parallel, and with none.
func TestCachesLeaveNoTrace(t *testing.T) {
	d := newDatabase(t)
	if out := d.run(mixedSetup); out != "" {
		t.Fatal(out)
	}
	outcome := func(f *contracts.Functions, n int) string {
		env := d.begin(f)
		defer env.Txn.Close()
		v, err := call(env, "mixed", datum.Int(int64(n)))
		if err != nil {
			return err.Error()
		}
		return v.Str() + "\n" + footprint(env)
	}
	const calls = 30
	want := make([]string, calls)
	for n := range want {
		want[n] = outcome(newFunctions(), n)
	}
	if !strings.HasPrefix(want[2], "30:623") {
		t.Fatalf("mixed(2) gives %s", want[2])
	}
	shared := newFunctions()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 3 * calls {
				n := (i*7 + w) % calls
				if got := outcome(shared, n); got != want[n] {
					t.Errorf("mixed(%d) gives %s, alone %s", n, got, want[n])
				}
			}
		})
	}
	wg.Wait()
}

// TestFaultsPassHandlers: what is no outcome of a transaction reaches the node,
// whatever handlers a contract has.
func TestFaultsPassHandlers(t *testing.T) {
	d := newDatabase(t)
	out := d.run(`CREATE FUNCTION spin() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  LOOP
    BEGIN
      LOOP NULL; END LOOP;
    EXCEPTION WHEN OTHERS OR query_canceled OR io_error OR internal_error THEN RETURN 1;
    END;
  END LOOP;
END $$`)
	if out != "" {
		t.Fatal(out)
	}
	fault := errors.New("the disk is gone")
	for _, want := range []error{
		fault, fmt.Errorf("reading: %w", fault),
		pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request"),
		pgerr.New(pgerr.IOError, "could not read"), pgerr.New(pgerr.InternalError, "bug"),
	} {
		env := d.begin(d.functions)
		env.Interrupted = func() error { return want }
		_, err := call(env, "spin")
		env.Txn.Close()
		if e, ok := pgerr.From(want); ok {
			if pgerr.CodeOf(err) != e.Code {
				t.Errorf("%v became %v", want, err)
			}
		} else if !errors.Is(err, want) {
			t.Errorf("%v became %v", want, err)
		}
	}
}

// TestSameVersionOtherDefinition: a definition that was rolled back and a later
// one may have the same identifier and version.
func TestSameVersionOtherDefinition(t *testing.T) {
	f := newFunctions()
	for _, body := range []string{"BEGIN RETURN 1; END", "BEGIN RETURN 2; END", "BEGIN RETURN 1; END"} {
		fn := &catalog.Func{
			OID: catalog.FirstUserOID, Version: 1, Schema: catalog.Blockchain, Name: "f", Kind: catalog.Function,
			Language: "plpgsql", Volatility: "v", Ret: datum.T(datum.Int4), RetOID: datum.Int4OID, Body: body,
		}
		env := &exec.Env{Functions: f.Exec()}
		env.Ctx.Format = &datum.ContractFormat
		v, err := f.Call(env, fn, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := body[len("BEGIN RETURN "):][:1]; fmt.Sprint(v.Int()) != want {
			t.Errorf("%s gives %d", body, v.Int())
		}
	}
}

// TestCheck: a full planning pass finds what would fail when it is reached.
func TestCheck(t *testing.T) {
	d := newDatabase(t)
	setup := d.run(`
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE FUNCTION broken(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r record; s record; a int;
BEGIN
  IF n > 0 THEN
    SELECT id FROM t INTO r;
    a := r.id + r.nope;
  END IF;
  UPDATE t SET w = 1;
  SELECT 1;
  a := nosuch(1);
  EXECUTE 'SELECT 1 AS x' INTO s;
  a := s.anything;
  FOR r IN SELECT v AS name FROM t LOOP a := r.name || r.id; END LOOP;
  RETURN a;
END $$`)
	if setup != "" {
		t.Fatal(setup)
	}
	env := d.begin(d.functions)
	defer env.Txn.Close()
	var got []string
	for _, err := range contracts.CheckFunction(env.Catalog.Funcs(catalog.Blockchain, "broken")[0], env.Catalog) {
		e, ok := pgerr.From(err)
		if !ok {
			t.Fatal(err)
		}
		lines := strings.Split(e.Context, "\n")
		got = append(got, e.Message+" | "+lines[len(lines)-1])
	}
	want := []string{
		`record "r" has no field "nope" | PL/pgSQL function broken(integer) line 6`,
		`column "w" of relation "t" does not exist | PL/pgSQL function broken(integer) line 8`,
		`query has no destination for result data | PL/pgSQL function broken(integer) line 9 at SQL statement`,
		`function nosuch(integer) does not exist | PL/pgSQL function broken(integer) line 10`,
		`record "r" has no field "id" | PL/pgSQL function broken(integer) line 13`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRecursionIsBounded: without any limit set, recursion is an error and not
// the end of the process.
func TestRecursionIsBounded(t *testing.T) {
	d := newDatabase(t)
	if out := d.run(`CREATE FUNCTION r(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN r(n + 1) + 1; END $$`); out != "" {
		t.Fatal(out)
	}
	env := d.begin(d.functions)
	defer env.Txn.Close()
	env.Limits.Nesting = 0
	if _, err := call(env, "r", datum.Int(1)); pgerr.CodeOf(err) != pgerr.StatementTooComplex {
		t.Errorf("%v, want 54001", pgerr.CodeOf(err))
	}
	if env.Depth != 0 {
		t.Errorf("depth is %d after the call", env.Depth)
	}
}
