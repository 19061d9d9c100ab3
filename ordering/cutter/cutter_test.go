package cutter

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// txOfSize makes a transaction that takes size bytes in a block, or one more
// where the length of a length leaves a gap, and whose name tells it apart.
func txOfSize(name string, size int) *block.Tx {
	tx := &block.Tx{
		User: identity.UserID{Org: "org", Name: "user"},
		Call: block.Call{Schema: "blockchain", Name: name, ArgTypes: []string{"bytea"}, Args: make([]block.Arg, 1)},
	}
	for block.TxSizeInBlock(tx) < size {
		missing := size - block.TxSizeInBlock(tx)
		tx.Call.Args[0].Value = append(tx.Call.Args[0].Value, make([]byte, (missing+1)/2)...)
	}
	if got := block.TxSizeInBlock(tx); got != size && got != size+1 {
		panic(fmt.Sprintf("transaction of %d bytes instead of %d", got, size))
	}
	return tx
}

// TestScript drives a cutter by a file. Times are microseconds. After every
// command all blocks that are due are cut, each of them being in flight from
// then on, and printed with the state that is left.
//
//	new [txs=] [bytes=] [timeout=] [pipeline=] [max-in-flight=] [number=]
//	add t=TIME [size=BYTES]      one transaction for each line of input
//	done t=TIME n=BLOCKS         BLOCKS fewer are in flight
//	time-to-cut t=TIME number=N  a message
//	tick t=TIME                  nothing but time
//	flush                        the end
func TestScript(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var c *Cutter
		inFlight := 0
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			arg := func(key string, otherwise int) int {
				d.MaybeScanArgs(t, key, &otherwise)
				return otherwise
			}
			now := int64(arg("t", 0))
			var out strings.Builder
			report := func(b Batch) {
				var names []string
				for _, tx := range b.Txs {
					names = append(names, tx.Call.Name)
				}
				fmt.Fprintf(&out, "block %d by %v: %s\n", b.Number, b.Reason, strings.Join(names, " "))
			}
			switch d.Cmd {
			case "new":
				cfg := Config{
					MaxTxs: arg("txs", 1000), MaxBytes: arg("bytes", 1<<20), Timeout: int64(arg("timeout", 1000)),
					Pipeline: arg("pipeline", 0), MaxInFlight: arg("max-in-flight", 0),
				}
				if err := cfg.Validate(); err != nil {
					return err.Error() + "\n"
				}
				c, inFlight = New(cfg, uint64(arg("number", 1))), 0
			case "add":
				for _, name := range strings.Fields(d.Input) {
					c.Add(txOfSize(name, arg("size", 200)), now)
				}
			case "done":
				inFlight -= arg("n", 1)
				c.InFlight(inFlight)
			case "time-to-cut":
				c.TimeToCut(uint64(arg("number", 0)))
			case "tick":
			case "flush":
				for b, ok := c.Flush(); ok; b, ok = c.Flush() {
					report(b)
				}
			default:
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			for b, ok := c.Cut(now); ok; b, ok = c.Cut(now) {
				report(b)
				inFlight++
				c.InFlight(inFlight)
			}
			fmt.Fprintf(&out, "waiting %d, in flight %d", c.Waiting(), inFlight)
			if at, ok := c.Deadline(); ok {
				fmt.Fprintf(&out, ", deadline %d", at)
			}
			return out.String() + "\n"
		})
	})
}

// model is the cutter as its documentation reads, over a plain list.
type model struct {
	cfg      Config
	number   uint64
	message  uint64
	inFlight int
	list     []entry
}

// fitting returns how many transactions make the next block and whether it is
// full.
func (m *model) fitting() (n int, full bool) {
	bytes := 0
	for n < len(m.list) && n < m.cfg.MaxTxs && (n == 0 || bytes+m.list[n].size <= m.cfg.MaxBytes) {
		bytes += m.list[n].size
		n++
	}
	return n, n < len(m.list) || n == m.cfg.MaxTxs || bytes >= m.cfg.MaxBytes
}

func (m *model) cut(now int64) (names []string, reason Reason) {
	if len(m.list) == 0 || m.cfg.MaxInFlight > 0 && m.inFlight >= m.cfg.MaxInFlight {
		return nil, 0
	}
	n, full := m.fitting()
	switch {
	case full:
		reason = Size
	case m.message == m.number:
		reason = Message
	case now >= m.list[0].arrived+m.cfg.Timeout:
		reason = Timeout
	case m.inFlight < m.cfg.Pipeline:
		reason = Idle
	default:
		return nil, 0
	}
	for _, e := range m.list[:n] {
		names = append(names, e.tx.Call.Name)
	}
	m.list = m.list[n:]
	m.number++
	return names, reason
}

// TestAgainstModel runs random histories on cutter and model.
func TestAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[Reason]int{}
	for history := range 300 {
		cfg := Config{MaxTxs: 1 + r.IntN(6), MaxBytes: 200 + r.IntN(1500), Timeout: int64(r.IntN(50)), Pipeline: r.IntN(3)}
		if r.IntN(2) == 0 {
			cfg.MaxInFlight = cfg.Pipeline + r.IntN(3)
		}
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		c, m := New(cfg, 7), &model{cfg: cfg, number: 7}
		var now int64
		added := 0
		for step := range 200 {
			now += int64(r.IntN(12))
			switch r.IntN(6) {
			case 0, 1, 2:
				for range r.IntN(5) {
					tx := txOfSize("tx"+strconv.Itoa(added), 190+r.IntN(600))
					added++
					c.Add(tx, now)
					m.list = append(m.list, entry{tx, block.TxSizeInBlock(tx), now})
				}
			case 3:
				number := m.number + uint64(r.IntN(3)) - 1
				c.TimeToCut(number)
				if number == m.number && len(m.list) > 0 {
					m.message = number
				}
			case 4:
				m.inFlight -= r.IntN(m.inFlight + 1)
				c.InFlight(m.inFlight)
			}
			checkDeadline(t, c, now)
			for {
				want, reason := m.cut(now)
				number := m.number - 1
				got, ok := c.Cut(now)
				if ok != (reason != 0) {
					t.Fatalf("history %d step %d: a block by %v is due, Cut says %v", history, step, reason, ok)
				}
				if !ok {
					break
				}
				var names []string
				for _, tx := range got.Txs {
					names = append(names, tx.Call.Name)
				}
				if fmt.Sprint(names) != fmt.Sprint(want) || got.Reason != reason || got.Number != number {
					t.Fatalf("history %d step %d: block %d by %v of %v, want %d by %v of %v",
						history, step, got.Number, got.Reason, names, number, reason, want)
				}
				seen[reason]++
				m.inFlight++
				c.InFlight(m.inFlight)
			}
			if c.Waiting() != len(m.list) {
				t.Fatalf("history %d step %d: %d wait, want %d", history, step, c.Waiting(), len(m.list))
			}
		}
	}
	for reason := Size; reason <= Idle; reason++ {
		if seen[reason] < 100 {
			t.Errorf("only %d blocks by %v: the histories show nothing", seen[reason], reason)
		}
	}
}

// checkDeadline: a block is due at the deadline, and if none is due now, none
// is before the deadline.
func checkDeadline(t *testing.T, c *Cutter, now int64) {
	at, ok := c.Deadline()
	due := func(at int64) bool { // on a copy that shares nothing
		twin := *c
		twin.waiting = append([]entry(nil), c.waiting...)
		_, ok := twin.Cut(at)
		return ok
	}
	switch {
	case ok && !due(at):
		t.Fatal("nothing is due at the deadline")
	case ok && at > now && !due(now) && due(at-1):
		t.Fatal("a block is due before the deadline")
	case !ok && due(1<<60):
		t.Fatal("no deadline, and yet time makes a block due")
	}
}
