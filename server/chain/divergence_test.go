package chain

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/cockroachkvs"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/lthash"
)

// pairOf are two nodes of a network of three organizations, with accounts 1..n.
func pairOf(t *testing.T, accounts int) (*source, *node, *node, *vfs.MemFS) {
	g := withNodes(testGenesis(nil), "org3")
	s, good := newSource(t, g), newNode(t, g, 2)
	stateFS := vfs.NewMem()
	bad := openStores(t, g, vfs.NewMem(), stateFS)
	t.Cleanup(bad.close)
	bad.workers = 1
	bad.reopen()
	both := func(b *block.Block) {
		mustCommit(t, good.process(b))
		mustCommit(t, bad.process(b))
	}
	both(s.block(s.tx(admin1, "create_deploytx", bank), s.tx(admin1, "approve_deploytx", int64(1)), s.tx(admin2, "approve_deploytx", int64(1)),
		s.tx(identity.UserID{Org: "org3", Name: "admin"}, "approve_deploytx", int64(1)), s.tx(admin1, "submit_deploytx", int64(1))))
	for from := 1; from <= accounts; from += 500 {
		var txs []*block.Tx
		for i := from; i < from+500 && i <= accounts; i++ {
			txs = append(txs, s.tx(alice, "open_account", i, num("100")))
		}
		both(s.block(txs...))
	}
	return s, good, bad, stateFS
}

// storedRow finds the stored version of an account.
func (n *node) storedRow(id int) (key []byte, v mvcc.Version, value []byte) {
	n.tb.Helper()
	view, err := n.chain.view(n.chain.Height())
	if err != nil {
		n.tb.Fatal(err)
	}
	table, ok := view.catalog.Table("blockchain", "accounts")
	if !ok {
		n.tb.Fatal("no table accounts")
	}
	err = n.store.EachVersion(everything, 0, n.chain.Height(), func(k []byte, at mvcc.Version, dead bool, row []byte) error {
		if tableOf(k) != uint32(table.OID) || dead || key != nil {
			return nil
		}
		if _, text := n.chain.describe(n.chain.Height(), k, row); text == fmt.Sprintf("(%d)", id) {
			key, v, value = append([]byte(nil), k...), at, append([]byte(nil), row...)
		}
		return nil
	})
	if err != nil || key == nil {
		n.tb.Fatalf("account %d is not stored: %v", id, err)
	}
	return key, v, value
}

// tamper writes to the store of a node behind its back, while it is down: put
// gives a version another value, nil deletes it. The node is opened again.
func (n *node) tamper(fs vfs.FS, key []byte, v mvcc.Version, value []byte) {
	n.tb.Helper()
	n.chain.Close()
	if err := n.store.Close(); err != nil {
		n.tb.Fatal(err)
	}
	db, err := pebble.Open("state", &pebble.Options{FS: fs, Comparer: &cockroachkvs.Comparer, KeySchema: cockroachkvs.KeySchema.Name,
		KeySchemas: sstable.MakeKeySchemas(&cockroachkvs.KeySchema), FormatMajorVersion: pebble.FormatTableFormatV6, Logger: quietPebble{}})
	if err != nil {
		n.tb.Fatal(err)
	}
	stored := binary.BigEndian.AppendUint64(append([]byte(nil), key...), 0)[:len(key)+1]
	stored = binary.BigEndian.AppendUint64(stored, v.Block+1)
	if v.Seq == 0 {
		stored = append(stored, 9)
	} else {
		stored = append(binary.BigEndian.AppendUint32(stored, v.Seq), 13)
	}
	if value == nil {
		err = db.Delete(stored, pebble.Sync)
	} else {
		err = db.Set(stored, append(binary.BigEndian.AppendUint64([]byte{0}, v.XID), value...), pebble.Sync)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		n.tb.Fatal(err)
	}
	if n.store, err = mvcc.Open("state", mvcc.Options{FS: fs, MemTableBytes: 4 << 20, Logger: quiet}); err != nil {
		n.tb.Fatal(err)
	}
	n.reopen()
}

type quietPebble struct{}

func (quietPebble) Infof(string, ...any)           {}
func (quietPebble) Errorf(string, ...any)          {}
func (quietPebble) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// another returns the row of account 1's balance changed: that of another account
// has the wrong key in it, so a byte of the numeric is changed.
func anotherValue(value []byte) []byte {
	changed := append([]byte(nil), value...)
	changed[len(changed)-1] ^= 1
	return changed
}

// agree lets nodes of all organizations sign the state that a node has.
func (s *source) agree(n *node, height block.Height) *block.Block {
	return s.block(s.vote(n, "org1", height, n.state(height)), s.vote(n, "org2", height, n.state(height)), s.vote(n, "org3", height, n.state(height)))
}

// TestTamperedStore: a row is changed at rest. The scrub finds it at once; a
// transaction that reads it makes the state differ, the checkpoint exposes the
// node, and bisecting with the other node finds the row.
func TestTamperedStore(t *testing.T) {
	s, good, bad, fs := pairOf(t, 1200)
	ctx := context.Background()
	scrub := func(n *node) []*Damage {
		t.Helper()
		r, err := n.chain.Scrub(ctx, ScrubOptions{BytesPerSecond: 1 << 40})
		if err != nil || r.Height != n.chain.Height() || r.Rows < 2400 {
			t.Fatalf("scrub: %+v, %v", r, err)
		}
		return r.Damage
	}
	if d := scrub(bad); len(d) != 0 {
		t.Fatalf("an intact store has damage: %v", d[0])
	}
	key, v, value := bad.storedRow(777)
	bad.tamper(fs, key, v, anotherValue(value))
	d := scrub(bad)
	if len(d) != 1 || d[0].Table != "accounts" || d[0].Key != "(777)" || d[0].Block != v.Block || string(d[0].Raw) != string(key) {
		t.Fatalf("the scrub found %v, not account 777 of block %d", d, v.Block)
	}
	// Nobody has read it yet: the hashes are equal.
	b := s.agree(good, good.chain.Height())
	good.process(b)
	bad.process(b)
	if bad.chain.Diverged() != nil || bad.state(b.Number) != good.state(b.Number) {
		t.Fatal("a row that nobody read changed a state hash")
	}
	b = s.block(s.tx(alice, "transfer", int64(1), 777, 3, num("1")))
	first := b.Number
	mustCommit(t, good.process(b))
	bad.process(b)
	for range 3 {
		b = s.block(s.tx(alice, "greet", "x"))
		good.process(b)
		bad.process(b)
	}
	if bad.state(first) == good.state(first) || bad.state(first-1) != good.state(first-1) {
		t.Fatal("the states do not begin to differ with the block that read the row")
	}
	last := good.chain.Height()
	b = s.agree(good, last)
	good.process(b)
	bad.process(b)
	exposed(t, s, bad, last)
	if good.chain.Diverged() != nil {
		t.Error("the honest node doubts itself")
	}
	// A peer without the signed state, and one that lies, are of no use.
	if _, err := bad.chain.Locate(ctx, bad.chain); err == nil {
		t.Error("a node that has the wrong state itself was believed")
	}
	for _, lie := range []func(*DigestAnswer){
		func(a *DigestAnswer) { a.Parts[0].Sum[9] ^= 1 },
		func(a *DigestAnswer) { a.Parts = a.Parts[1:] },
	} {
		if _, err := bad.chain.Locate(ctx, liar{good.chain, lie}); !errors.Is(err, ErrUntrustworthy) {
			t.Errorf("a peer that lies: %v", err)
		}
	}
	found, err := bad.chain.Locate(ctx, good.chain)
	if err != nil {
		t.Fatal(err)
	}
	if found.Block != first || found.Table != "accounts" || found.Key != "(777)" || !strings.Contains(found.Reason, "another value") {
		t.Errorf("found %s, not account 777 before block %d", found, first)
	}
	if err := bad.chain.Halted(); err == nil || !strings.Contains(bad.chain.Diverged().Verdict().Detail, "table accounts, key (777)") {
		t.Errorf("clients hear %v", err)
	}
}

type liar struct {
	*Chain
	lie func(*DigestAnswer)
}

func (l liar) Digests(q *DigestRequest) (*DigestAnswer, error) {
	a, err := l.Chain.Digests(q)
	if err == nil {
		l.lie(a)
	}
	return a, err
}

// exposed checks that a node knows that it differs, over restarts, processes no
// block any more, and still shows its data.
func exposed(t *testing.T, s *source, n *node, checkpoint block.Height) {
	t.Helper()
	for range 2 {
		d := n.chain.Diverged()
		if d == nil || d.Height != checkpoint || d.Own != n.state(checkpoint) || d.Expected == d.Own {
			t.Fatalf("the node knows %+v of itself", d)
		}
		height := n.chain.Height()
		b := *s.last
		b.Number++
		var diverged *Divergence
		if _, err := n.chain.Process(&b); !errors.As(err, &diverged) || n.chain.Height() != height {
			t.Fatalf("it processes a block: %v", err)
		}
		if v := diverged.Verdict(); v.Code != "XX001" {
			t.Errorf("clients hear %s", v.Code)
		}
		if got := n.query("SELECT count(*) > 0 FROM pgledger"); got != "t\n" {
			t.Errorf("its data read %q", got)
		}
		n.reopen()
	}
}

// TestMissingAndAddedRows: rows that were deleted or added at rest are named, too.
func TestMissingAndAddedRows(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(n *node, fs vfs.FS)
	}{
		{"missing", "its version is missing", func(n *node, fs vfs.FS) {
			key, v, _ := n.storedRow(5)
			n.tamper(fs, key, v, nil)
		}},
		{"added", "did not write it", func(n *node, fs vfs.FS) {
			key, v, value := n.storedRow(5)
			key[len(key)-1] += 50
			n.tamper(fs, key, v, value)
		}},
		{"of nobody", "no transaction of the block wrote it", func(n *node, fs vfs.FS) {
			key, v, value := n.storedRow(5)
			key[len(key)-1] += 50
			v.Seq += 700
			n.tamper(fs, key, v, value)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, bad, fs := pairOf(t, 20)
			c.change(bad, fs)
			r, err := bad.chain.Scrub(context.Background(), ScrubOptions{BytesPerSecond: 1 << 40})
			if err != nil || len(r.Damage) != 1 || r.Damage[0].Table != "accounts" || !strings.Contains(r.Damage[0].Reason, c.want) {
				t.Fatalf("the scrub found %v, %v", r.Damage, err)
			}
		})
	}
}

// TestInjectedBug: a node computes something else than the others, as one with a
// bug would.
func TestInjectedBug(t *testing.T) {
	s, good, bad, _ := pairOf(t, 300)
	b := s.block(s.tx(alice, "transfer", int64(1), 7, 8, num("1")))
	good.process(b)
	other := s.tx(alice, "transfer", int64(1), 7, 8, num("2"))
	// The bug: it executes another amount than was ordered.
	bad.inject(b, other)
	last := b.Number
	b = s.agree(good, last)
	good.process(b)
	bad.process(b)
	exposed(t, s, bad, last)
	found, err := bad.chain.Locate(context.Background(), good.chain)
	if err != nil || found.Block != last || found.Table != "accounts" || found.Key != "(7)" {
		t.Errorf("found %v, %v", found, err)
	}
}

// inject processes a block as if its first transaction had been another one.
func (n *node) inject(b *block.Block, instead *block.Tx) {
	n.tb.Helper()
	if err := n.blocks.Append(b); err != nil {
		n.tb.Fatal(err)
	}
	c := n.chain
	schedule, refused, err := c.checkConfig(b)
	if err != nil {
		n.tb.Fatal(err)
	}
	r := c.begin(b)
	r.schedule, r.refused = schedule, refused
	fault := c.verify(r)
	r.list[0].tx = instead
	r.batch = c.store.NewBlockBatch(b.Number)
	for _, stage := range []func(*run) error{
		c.execute,
		func(r *run) error { c.decide(r); return c.apply(r) },
		func(r *run) error {
			next, err := c.commit(r, r.receipts())
			if err != nil {
				return err
			}
			return c.advance(r, next, c.metrics)
		},
	} {
		fault = errors.Join(fault, stage(r))
	}
	if fault != nil {
		n.tb.Fatal(fault)
	}
	r.release()
}

// TestDigestRequests: parts add up, and what makes no sense is refused.
func TestDigestRequests(t *testing.T) {
	_, good, _, _ := pairOf(t, 100)
	h := good.chain.Height()
	all, err := good.chain.Digests(&DigestRequest{Height: h})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all.Parts {
		span := tableSpan(p.Table)
		bounds, rows, err := good.chain.cut(span, h)
		if err != nil || rows != p.Rows {
			t.Fatalf("table %d has %d rows, %d: %v", p.Table, rows, p.Rows, err)
		}
		parts, err := good.chain.Digests(&DigestRequest{Height: h, Start: span.Start, End: span.End, Bounds: bounds})
		if err != nil {
			t.Fatal(err)
		}
		var sum lthash.Sum
		for _, q := range parts.Parts {
			s, err := lthash.Decode(q.Sum)
			if err != nil {
				t.Fatal(err)
			}
			sum.Add(s)
			rows -= q.Rows
		}
		if rows != 0 || string(sum.Append(nil)) != string(p.Sum) {
			t.Errorf("table %d: the parts do not add up", p.Table)
		}
	}
	for name, q := range map[string]*DigestRequest{
		"a height to come": {Height: h + 1},
		"bounds astray":    {Height: h, Start: []byte{1}, End: []byte{9}, Bounds: [][]byte{{5}, {4}}},
		"too many bounds":  {Height: h, Start: []byte{1}, End: []byte{9}, Bounds: make([][]byte, MaxParts)},
	} {
		if _, err := good.chain.Digests(q); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
