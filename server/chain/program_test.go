package chain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// programs is a contract that runs little programs over registers and lists, so
// that tests can make transactions of any shape. What a program reads is in its
// result, and what it writes depends on what it read: two executions with one
// result did the same.
//
//	rK  read register K          wK  write it          dK  delete it
//	sK  count and sum the registers K to K+3
//	lK  read list K              aK  append the program's number to it
//	fK  fail if register K is odd
const programs = `
CREATE TABLE reg (id int PRIMARY KEY, v bigint NOT NULL);
CREATE TABLE lst (id int PRIMARY KEY, v text NOT NULL);
CREATE FUNCTION run(p_id bigint, p_ops text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE op text; c text; k int; x bigint; n bigint; t text; acc bigint := p_id; res text := '';
BEGIN
  FOREACH op IN ARRAY string_to_array(p_ops, ' ') LOOP
    c := left(op, 1);
    k := substr(op, 2)::int;
    IF c = 'r' OR c = 'f' THEN
      SELECT v INTO x FROM reg WHERE id = k;
      res := res || op || '=' || coalesce(x::text, '-') || ' ';
      acc := (acc * 7 + coalesce(x, 13)) % 1000003;
      IF c = 'f' AND coalesce(x, 0) % 2 = 1 THEN
        RAISE EXCEPTION 'odd: %', res;
      END IF;
    ELSIF c = 's' THEN
      SELECT count(*), coalesce(sum(v), 0)::bigint INTO n, x FROM reg WHERE id BETWEEN k AND k + 3;
      res := res || op || '=' || n || '/' || x || ' ';
      acc := (acc * 7 + n + x) % 1000003;
    ELSIF c = 'w' THEN
      UPDATE reg SET v = acc % 1000 WHERE id = k;
      res := res || op || '=' || (CASE WHEN FOUND THEN 'u' ELSE 'i' END) || ' ';
      IF NOT FOUND THEN INSERT INTO reg VALUES (k, acc % 1000); END IF;
    ELSIF c = 'd' THEN
      DELETE FROM reg WHERE id = k;
      res := res || op || '=' || (CASE WHEN FOUND THEN 'y' ELSE 'n' END) || ' ';
    ELSIF c = 'l' THEN
      SELECT v INTO t FROM lst WHERE id = k;
      res := res || op || '=' || t || ' ';
    ELSE
      UPDATE lst SET v = v || ',' || p_id WHERE id = k;
    END IF;
  END LOOP;
  RETURN res;
END $$;
CREATE FUNCTION make(p_registers int, p_lists int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO reg SELECT g, g * 10 FROM generate_series(1, p_registers) g;
  INSERT INTO lst SELECT g, '' FROM generate_series(1, p_lists) g;
END $$;
`

// model is the state of registers and lists.
type model struct {
	reg map[int]int64
	lst map[int]string
}

func newModel(registers, lists int) *model {
	m := &model{map[int]int64{}, map[int]string{}}
	for k := range registers {
		m.reg[k+1] = int64(k+1) * 10
	}
	for k := range lists {
		m.lst[k+1] = ""
	}
	return m
}

func (m *model) clone() *model { return &model{maps.Clone(m.reg), maps.Clone(m.lst)} }

// String is what the queries of state show.
func (m *model) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m.reg)) {
		fmt.Fprintf(&b, "%d|%d\n", k, m.reg[k])
	}
	for _, k := range slices.Sorted(maps.Keys(m.lst)) {
		fmt.Fprintf(&b, "%d|%s\n", k, m.lst[k])
	}
	return b.String()
}

// state reads the same from a node.
func modelOf(n *node) string { return n.query("SELECT * FROM reg") + n.query("SELECT * FROM lst") }

// run is the contract: what it returns or, if fails, raises. On failure m is as
// it was.
func (m *model) run(id int64, ops string) (result string, fails bool) {
	acc, before := id, m.clone()
	b := func(ok bool, yes, no string) string {
		if ok {
			return yes
		}
		return no
	}
	for _, op := range strings.Fields(ops) {
		k, _ := strconv.Atoi(op[1:])
		x, found := m.reg[k]
		switch op[0] {
		case 'r', 'f':
			shown, add := "-", int64(13)
			if found {
				shown, add = strconv.FormatInt(x, 10), x
			}
			result += op + "=" + shown + " "
			acc = (acc*7 + add) % 1000003
			if op[0] == 'f' && x%2 == 1 {
				*m = *before
				return "odd: " + result, true
			}
		case 's':
			n, sum := int64(0), int64(0)
			for i := k; i <= k+3; i++ {
				if v, ok := m.reg[i]; ok {
					n, sum = n+1, sum+v
				}
			}
			result += fmt.Sprintf("%s=%d/%d ", op, n, sum)
			acc = (acc*7 + n + sum) % 1000003
		case 'w':
			m.reg[k] = acc % 1000
			result += op + "=" + b(found, "u", "i") + " "
		case 'd':
			delete(m.reg, k)
			result += op + "=" + b(found, "y", "n") + " "
		case 'l':
			result += op + "=" + m.lst[k] + " "
		case 'a':
			m.lst[k] += fmt.Sprintf(",%d", id)
		}
	}
	return result, false
}

// outcome is what a node made of a program.
type outcome struct {
	id     int64
	ops    string
	text   string // result, or message of its error
	failed bool
	round  uint8
}

// outcomes are those of the committed and failed of a block: the ones that must
// have a place in a serial order.
func (n *node) outcomes(receipts []Receipt, ids []int64, ops []string) []outcome {
	n.tb.Helper()
	var list []outcome
	for i, r := range receipts {
		o := outcome{id: ids[i], ops: ops[i], round: n.chain.run.list[i].round}
		switch r.Status {
		case Committed:
			o.text = textResult(n.tb, r.Result)
		case Failed:
			if o.text, o.failed = r.Err.Message, true; r.Err.Code != pgerr.RaiseException {
				n.tb.Fatalf("program %q: %v", ops[i], r.Err)
			}
		default:
			continue
		}
		list = append(list, o)
	}
	return list
}

// textResult decodes the one text that a call has returned.
func textResult(tb testing.TB, encoded []byte) string {
	tb.Helper()
	rows, err := contracts.DecodeRows([]plan.Column{{Type: datum.T(datum.Text)}}, encoded)
	if err != nil || len(rows) != 1 {
		tb.Fatalf("result %x: %v", encoded, err)
	}
	return rows[0][0].Str()
}

// serial looks for a serial order, among all, in which every outcome is what the
// model gives and that ends in the state of the node. Rounds come one after the
// other; with inOrder, the outcomes of this round stand in block order.
func serial(m *model, list []outcome, final string, inOrder uint8) bool {
	if len(list) == 0 {
		return m.String() == final
	}
	for i, o := range list {
		if slices.ContainsFunc(list, func(p outcome) bool { return p.round < o.round }) {
			continue
		}
		if o.round == inOrder && i > 0 {
			continue // list keeps block order
		}
		next := m.clone()
		if text, failed := next.run(o.id, o.ops); text != o.text || failed != o.failed {
			continue
		}
		if serial(next, slices.Delete(slices.Clone(list), i, i+1), final, inOrder) {
			return true
		}
	}
	return false
}

// noRound is no round that serial would look for.
const noRound = 255

// program signs a run of a program.
func (s *source) program(id int64, ops string, change func(*block.Tx)) *block.Tx {
	return s.signed(alice, s.call("run", id, ops), change)
}

// programNode is a node with registers 1 to r and lists 1 to l.
func programNode(t testing.TB, g *block.Genesis, workers, r, l int) (*source, *node) {
	t.Helper()
	s, n := newSource(t, g), newNode(t, g, workers)
	mustCommit(t, n.process(s.deployBlock(1, programs)))
	mustCommit(t, n.process(s.block(s.tx(alice, "make", r, l))))
	return s, n
}
