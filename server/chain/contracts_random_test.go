package chain

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// contractWriter makes random schemas, contracts over them and calls. Every contract
// is c0(a int, b text), c1(...), ..., and ends, for its loops are bounded and it
// calls only those before it.
type contractWriter struct {
	rng    *rand.Rand
	tables int
	out    strings.Builder
	indent int
	vars   int // names that are declared so far
}

func (w *contractWriter) line(format string, args ...any) {
	w.out.WriteString(strings.Repeat("  ", w.indent))
	fmt.Fprintf(&w.out, format+"\n", args...)
}

func (w *contractWriter) table() string { return "t" + strconv.Itoa(w.rng.IntN(w.tables)) }

func (w *contractWriter) pick(list ...string) string { return list[w.rng.IntN(len(list))] }

// schema writes the tables, each with a trigger that logs changes into the next one's
// counter or refuses them.
func (w *contractWriter) schema() string {
	w.out.Reset()
	w.line("CREATE TABLE log (id bigint PRIMARY KEY, n int NOT NULL);")
	for i := range w.tables {
		check := w.pick("", " CHECK (v < 5000)", " CHECK (v % 7 <> 6)")
		w.line("CREATE TABLE t%d (k int PRIMARY KEY, v int NOT NULL%s, ts text, tj jsonb, tl int[]);", i, check)
		if w.rng.IntN(2) == 0 {
			w.line("CREATE INDEX ON t%d (v, k);", i)
		} else {
			w.line("CREATE UNIQUE INDEX ON t%d (ts, k);", i)
		}
		if w.rng.IntN(2) == 0 {
			w.line("CREATE FUNCTION g%d() RETURNS trigger LANGUAGE plpgsql AS $g$ BEGIN", i)
			w.line("  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;")
			w.line("  IF NEW.v %% 11 = 3 THEN RETURN NULL; END IF;")
			w.line("  NEW.ts := coalesce(NEW.ts, '') || left(TG_NAME, 1); RETURN NEW;")
			w.line("END $g$;")
			w.line("CREATE TRIGGER u%d BEFORE %s ON t%d FOR EACH ROW EXECUTE FUNCTION g%d();", i, w.pick("INSERT", "UPDATE", "INSERT OR UPDATE OR DELETE"), i, i)
		}
	}
	return w.out.String()
}

// contract writes function number n.
func (w *contractWriter) contract(n int) string {
	w.out.Reset()
	w.line("CREATE FUNCTION c%d(a int, b text) RETURNS text LANGUAGE plpgsql AS $f$", n)
	w.line("DECLARE x int := a; s text := b; j jsonb := '{}'; l int[] := ARRAY[a]; r record;")
	w.line("BEGIN")
	w.indent, w.vars = 1, 0
	for range 2 + w.rng.IntN(4) {
		w.statement(n, 2)
	}
	w.line("RETURN left(concat_ws('/', x, s, j, l), 300);")
	w.indent = 0
	w.line("END $f$;")
	return w.out.String()
}

// number writes an integer of small size.
func (w *contractWriter) number() string {
	return w.pick("a", "x", "length(s)", "x % 13", "coalesce(l[1], 2)", "coalesce((j->>'n')::int, 1)", "abs(x) % 5 + 1", strconv.Itoa(w.rng.IntN(20)))
}

func (w *contractWriter) key() string { return "abs(" + w.number() + ") % 8" }

func (w *contractWriter) statement(n, depth int) {
	k := w.rng.IntN(18)
	if depth == 0 {
		k %= 11
	}
	t := w.table()
	switch k {
	case 0, 1:
		w.line("INSERT INTO %s VALUES (%s, %s, s, j, l) ON CONFLICT (k) DO UPDATE SET v = %s.v + 1;", t, w.key(), w.number(), t)
	case 2:
		w.line("INSERT INTO %s VALUES (%s, %s);", t, w.key(), w.number()) // may fail: 23505
	case 3:
		w.line("UPDATE %s SET v = v + %s, ts = left(s || b, 40) WHERE k = %s RETURNING v INTO x;", t, w.number(), w.key())
		w.line("x := coalesce(x, a);")
	case 4:
		w.line("DELETE FROM %s WHERE k = %s;", t, w.key())
		w.line("IF FOUND THEN s := left(s || 'd', 60); END IF;")
	case 5:
		w.line("SELECT count(*)::int, coalesce(sum(v), 0)::int %% 1000 INTO x, a FROM %s WHERE k BETWEEN 1 AND %s;", t, w.key())
	case 6:
		w.line("j := jsonb_set(j || jsonb_build_object('n', %s %% 100), '{m}', to_jsonb(left(s, 5)));", w.number())
	case 7:
		w.line("l := (l || (%s))[1:6];", w.number())
	case 8:
		w.line("EXECUTE 'UPDATE %s SET v = v + $1 WHERE k = $2' USING %s %% 50, %s;", t, w.number(), w.key())
	case 9:
		if n > 0 {
			w.line("s := left(s || c%d(%s %% 10, 'n'), 60);", w.rng.IntN(n), w.number())
		} else {
			w.line("s := left(s || md5(x::text), 20);")
		}
	case 10:
		w.line("SELECT * INTO r FROM %s WHERE k = %s; x := coalesce(r.v, x) %% 1000;", t, w.key())
	case 11, 12:
		w.block("IF "+w.number()+" "+w.pick("<", ">", "=")+" "+w.number()+" THEN", "END IF;", n, depth)
	case 13:
		w.block(fmt.Sprintf("FOR i IN 1..%d LOOP", 1+w.rng.IntN(3)), "END LOOP;", n, depth)
	case 14:
		w.block(fmt.Sprintf("FOR r IN SELECT k, v FROM %s WHERE k < 5 ORDER BY k %s LOOP", t, w.pick("", "DESC")), "END LOOP;", n, depth)
	case 15:
		w.block("FOREACH x IN ARRAY l LOOP", "END LOOP;", n, depth)
	default:
		w.line("BEGIN")
		w.indent++
		w.statement(n, depth-1)
		if w.rng.IntN(3) == 0 {
			w.line("IF %s > 6 THEN RAISE EXCEPTION 'e %%', x USING ERRCODE = 'P%04d'; END IF;", w.number(), w.rng.IntN(20)+10)
		}
		w.indent--
		w.line("EXCEPTION WHEN %s THEN", w.pick("unique_violation", "OTHERS", "check_violation OR division_by_zero"))
		w.line("  s := left(s || SQLSTATE, 60);")
		w.line("END;")
	}
}

func (w *contractWriter) block(head, tail string, n, depth int) {
	w.line("%s", head)
	w.indent++
	for range 1 + w.rng.IntN(2) {
		w.statement(n, depth-1)
	}
	w.indent--
	w.line("%s", tail)
}

// TestRandomContracts: random contracts give the same state hash on every node,
// whatever its number of workers and processors. TALLYSTICK_SOAK_BLOCKS makes it long.
func TestRandomContracts(t *testing.T) {
	blocks := 24
	if text := os.Getenv("TALLYSTICK_SOAK_BLOCKS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		blocks = n
	}
	seed := rand.Uint64()
	if text := os.Getenv("TALLYSTICK_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("TALLYSTICK_SEED=%d", seed)
	for _, flow := range []string{block.FlowOrderThenExecute, block.FlowExecuteOrderInParallel} {
		t.Run(flow, func(t *testing.T) { randomContracts(t, rand.New(rand.NewPCG(seed, uint64(len(flow)))), flow, blocks/2) })
	}
}

func randomContracts(t *testing.T, rng *rand.Rand, flow string, blocks int) {
	g := testGenesis(func(p *block.Params) {
		p.Flow, p.MaxSteps = flow, 20_000 // some run into the limit
		if rng.IntN(2) == 0 {
			p.Conflicts = block.ConflictsReexecute
		}
	})
	s := newSource(t, g)
	one, many := newNode(t, g, 1), newNode(t, g, 16)
	processors := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(processors)
	step := func(b *block.Block) []Receipt {
		runtime.GOMAXPROCS(1)
		receipts := one.process(b)
		runtime.GOMAXPROCS(4)
		if other := summary(many.process(b)); other != summary(receipts) {
			t.Fatalf("block %d: with one worker\n%swith sixteen\n%s", b.Number, summary(receipts), other)
		}
		if x, y := one.state(b.Number), many.state(b.Number); x != y {
			t.Fatalf("block %d: state hash %s with one worker, %s with sixteen", b.Number, x, y)
		}
		return receipts
	}
	w := &contractWriter{rng: rng, tables: 2 + rng.IntN(2)}
	mustCommit(t, step(s.deployBlock(1, w.schema())))
	const contracts = 6
	id := int64(1)
	var deployed []int
	for n := range contracts {
		id++
		receipts := step(s.deployBlock(id, w.contract(n)))
		if receipts[0].Status != Committed {
			// c<n> is called by later ones: put an empty one in its place.
			t.Logf("contract refused: %v %s\n%s", receipts[0].Err, receipts[0].Err.Detail, w.out.String())
			mustCommit(t, step(s.deployBlock(id, fmt.Sprintf("CREATE FUNCTION c%d(a int, b text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN b; END $$", n))))
		}
		deployed = append(deployed, n)
	}
	count := map[Status]int{}
	users := []identity.UserID{alice, bob}
	for range blocks {
		var txs []*block.Tx
		for range 1 + rng.IntN(12) {
			name := "c" + strconv.Itoa(deployed[rng.IntN(len(deployed))])
			txs = append(txs, s.tx(users[rng.IntN(2)], name, rng.IntN(12), strings.Repeat("z", rng.IntN(4))))
		}
		if rng.IntN(8) == 0 { // a contract changes under those that run
			n := deployed[rng.IntN(len(deployed))]
			id++
			receipts := step(s.deployBlock(id, strings.Replace(w.contract(n), "CREATE", "CREATE OR REPLACE", 1), txs...))
			if r := receipts[len(txs)]; r.Status != Committed {
				id--
			}
			continue
		}
		for _, r := range step(s.block(txs...)) {
			count[r.Status]++
		}
	}
	t.Logf("committed %d, failed %d, aborted %d", count[Committed], count[Failed], count[Aborted])
	// With re-execution nobody has to be aborted.
	conflicts := count[Aborted] > 0 || g.Params.Conflicts == block.ConflictsReexecute
	if count[Committed] == 0 || blocks > 100 && (count[Failed] == 0 || !conflicts) {
		t.Error("the contracts are all of one kind")
	}
}
