package raft

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering/orderingtest"
)

func someItems(n int) []item {
	var items []item
	for _, tx := range orderingtest.NewTxMaker(block.Hash{1}).Some(n) {
		items = append(items, itemOf(tx))
	}
	return items
}

func TestEntryRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 7} {
		e := &entry{proposed: 1_700_000_000_000_001, configID: block.Hash{9}, txs: someItems(n)}
		raw := e.encode()
		got, err := decodeEntry(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got.proposed != e.proposed || got.configID != e.configID || len(got.txs) != n {
			t.Fatalf("%d transactions come back as %d", n, len(got.txs))
		}
		for i := range got.txs {
			if got.txs[i].content != e.txs[i].content {
				t.Errorf("transaction %d differs", i)
			}
		}
		if !bytes.Equal(got.encode(), raw) {
			t.Error("encoded again it differs")
		}
	}
}

func TestMalformedEntries(t *testing.T) {
	good := (&entry{proposed: 5, txs: someItems(2)}).encode()
	change := func(f func(b []byte) []byte) []byte { return f(append([]byte(nil), good...)) }
	for name, raw := range map[string][]byte{
		"nothing":        nil,
		"version":        change(func(b []byte) []byte { b[0]++; return b }),
		"negative time":  change(func(b []byte) []byte { b[1] = 0xff; return b }),
		"cut off":        good[:len(good)-1],
		"head only, cut": good[:entryHead-1],
		"trailing byte":  append(append([]byte(nil), good...), 0),
		"long length":    change(func(b []byte) []byte { return append(b[:entryHead], binary.AppendUvarint(nil, block.MaxTxBytes+1)...) }),
		"endless length": change(func(b []byte) []byte { return append(b[:entryHead], bytes.Repeat([]byte{0xff}, 12)...) }),
	} {
		if _, err := decodeEntry(raw); err == nil {
			t.Errorf("an entry is accepted: %s", name)
		}
	}
}

func TestState(t *testing.T) {
	want := state{7, block.Hash{1, 2}, 1_700_000_000_000_000}
	raw := want.encode()
	if got, err := decodeState(raw); err != nil || got != want {
		t.Errorf("%v comes back as %v: %v", want, got, err)
	}
	for name, raw := range map[string][]byte{
		"short": raw[1:], "long": append(append([]byte(nil), raw...), 0),
		"version": append([]byte{9}, raw[1:]...),
		"height":  append([]byte{stateVersion, 0xff}, raw[2:]...),
	} {
		if s, err := decodeState(raw); err == nil {
			t.Errorf("%s: a snapshot is read as %v", name, s)
		}
	}
}

// FuzzDecodeEntry: what is accepted is accepted again once encoded, and nothing
// panics.
func FuzzDecodeEntry(f *testing.F) {
	f.Add((&entry{proposed: 5, txs: someItems(2)}).encode())
	f.Add((&entry{}).encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := decodeEntry(raw)
		if err != nil {
			return
		}
		again, err := decodeEntry(e.encode())
		if err != nil || len(again.txs) != len(e.txs) {
			t.Fatalf("accepted and encoded again, it is refused: %v", err)
		}
	})
}

func TestFrames(t *testing.T) {
	items := someItems(3)
	frame := appendFrame(nil, frameTxs, func(b []byte) []byte { return appendTxs(b, items) })
	kind, payload, err := readFrame(bytes.NewReader(frame))
	if err != nil || kind != frameTxs {
		t.Fatalf("frame %d: %v", kind, err)
	}
	if got, err := decodeTxs(payload); err != nil || len(got) != 3 {
		t.Fatalf("%d transactions: %v", len(got), err)
	}
	long := []byte{frameTxs, 0xff, 0xff, 0xff, 0xff}
	if _, _, err := readFrame(bytes.NewReader(long)); !errors.Is(err, errMalformed) {
		t.Errorf("a frame of 4 GB: %v", err)
	}
	if _, _, err := readFrame(bytes.NewReader(frame[:len(frame)-1])); err == nil {
		t.Error("a frame that is cut off is read")
	}
	if _, err := readBlock(bytes.NewReader([]byte{0xff, 0, 0, 0, 1})); !errors.Is(err, errMalformed) {
		t.Errorf("a block of 4 GB: %v", err)
	}
}

// TestRecentAgainstModel compares with a list of the last blocks, and expects the
// same after a restart in between.
func TestRecentAgainstModel(t *testing.T) {
	const remember = 5
	all := someItems(60)
	r := newRecent(remember)
	var model [][]item // of blocks 1, 2, ...
	pick := func(step int) []item {
		var items []item
		for i := range 1 + step%4 {
			items = append(items, all[(step*step*7+i*step*3+i)%len(all)])
		}
		return items
	}
	dropped := 0
	for step := range 600 {
		number := uint64(len(model) + 1)
		known := map[content]bool{}
		for _, b := range model[len(model)-min(len(model), remember):] {
			for _, it := range b {
				known[it.content] = true
			}
		}
		items := pick(step)
		var want []item
		for _, it := range items {
			if !known[it.content] {
				known[it.content] = true
				want = append(want, it)
			}
		}
		dropped += len(items) - len(want)
		got := r.admit(number, items)
		if len(got) != len(want) {
			t.Fatalf("step %d: %d of the transactions are new, want %d", step, len(got), len(want))
		}
		for i := range got {
			if got[i].content != want[i].content {
				t.Fatalf("step %d: transaction %d differs", step, i)
			}
		}
		if len(want) > 0 {
			model = append(model, want)
		}
		if step%37 == 0 { // a restart: only the last blocks are read
			r = newRecent(remember)
			for i := len(model) - min(len(model), remember); i < len(model); i++ {
				r.admit(uint64(i+1), append([]item(nil), model[i]...))
			}
		}
		if len(r.ordered) > remember*4 {
			t.Fatalf("step %d: %d transactions are remembered", step, len(r.ordered))
		}
	}
	if dropped < 50 {
		t.Errorf("only %d duplicates: it shows nothing", dropped)
	}
}

// TestClaim: a leader takes a transaction once a reign.
func TestClaim(t *testing.T) {
	items := someItems(4)
	r := newRecent(10)
	r.admit(1, append([]item(nil), items[:1]...))
	if got := r.claim(append([]item(nil), items[0], items[1], items[1], items[2])); len(got) != 2 {
		t.Errorf("%d are taken, want 2", len(got))
	}
	if got := r.claim(append([]item(nil), items[1:]...)); len(got) != 1 {
		t.Errorf("%d are taken, want 1", len(got))
	}
	r.newReign()
	if got := r.claim(append([]item(nil), items...)); len(got) != 3 {
		t.Errorf("in a new reign %d are taken, want 3", len(got))
	}
	r.admit(2, append([]item(nil), items[1:]...))
	if len(r.proposed) != 0 {
		t.Errorf("%d are remembered as proposed although ordered", len(r.proposed))
	}
}

func TestPool(t *testing.T) {
	items := someItems(6)
	p := newPool(4)
	for i := range 4 {
		if full := p.add(items[i]); full != nil {
			t.Fatalf("no room for transaction %d", i)
		}
	}
	if full := p.add(items[0]); full != nil {
		t.Error("a transaction that waits already needs room")
	}
	full := p.add(items[4])
	if full == nil {
		t.Fatal("there is room for a fifth one")
	}
	got, cursor := p.take(nil, 0, 3, 1<<20)
	if len(got) != 3 || cursor != 3 || got[2].content != items[2].content {
		t.Fatalf("%d taken up to %d", len(got), cursor)
	}
	if got, _ := p.take(nil, 0, 10, 1); len(got) != 1 {
		t.Errorf("%d taken although one exceeds the bytes", len(got))
	}
	select {
	case <-full:
		t.Fatal("there is room before anything was removed")
	default:
	}
	p.remove([]item{items[5], items[1], items[0]})
	select {
	case <-full:
	default:
		t.Fatal("nobody is told that there is room")
	}
	if p.add(items[4]) != nil || p.len() != 3 {
		t.Errorf("%d wait, want 3", p.len())
	}
	got, cursor = p.take(nil, cursor, 10, 1<<20)
	if len(got) != 2 || got[0].content != items[3].content || got[1].content != items[4].content {
		t.Errorf("%d follow the cursor", len(got))
	}
	p.remove(items)
	if p.len() != 0 || len(p.order) != 0 {
		t.Errorf("%d wait, %d are kept", p.len(), len(p.order))
	}
	if got, _ = p.take(nil, 0, 10, 1<<20); len(got) != 0 || cursor != 5 {
		t.Errorf("%d are left, cursor %d", len(got), cursor)
	}
}

// TestStrangers: connections that are no orderer's are closed, and the orderer
// goes on.
func TestStrangers(t *testing.T) {
	c := newCluster(t, 1, func(o *Options) { o.ElectionTimeout = 30 * time.Millisecond })
	c.startAll()
	c.crown(0)
	network := c.genesis.Genesis.NetworkID()
	foreign := block.Hash{1}
	foreignTx := appendFrame(nil, frameTxs, func(b []byte) []byte { return appendTxs(b, someItems(1)) })
	fetch := func(network block.Hash, from, to uint64) string {
		b := append([]byte{channelBlocks}, network[:]...)
		b = binary.BigEndian.AppendUint64(b, from)
		return string(binary.BigEndian.AppendUint64(b, to))
	}
	for name, say := range map[string]string{
		"another protocol":    "GET / HTTP/1.1\r\n\r\n",
		"another network":     string(channelForward) + string(foreign[:]),
		"foreign transaction": string(channelForward) + string(network[:]) + string(foreignTx),
		"long frame":          string(channelForward) + string(network[:]) + "\x01\xff\xff\xff\xff",
		"unknown frame":       string(channelForward) + string(network[:]) + "\x09\x00\x00\x00\x00",
		"short height":        string(channelForward) + string(network[:]) + "\x02\x00\x00\x00\x01\x00",
		"foreign blocks":      fetch(foreign, 1, 10),
	} {
		conn, err := net.Dial("tcp", c.nodes[0].opts.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(say)); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if n, err := bufio.NewReader(conn).ReadByte(); err == nil || isTimeout(err) {
			t.Errorf("%s: the answer is %d, %v", name, n, err)
		}
		_ = conn.Close()
	}
	txs := orderingtest.NewTxMaker(network).Some(30)
	c.submit(0, txs...)
	c.agree(txs, 0)

	// What nobody has is answered with what there is.
	conn, err := net.Dial("tcp", c.nodes[0].opts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(fetch(network, 1, 1<<60))); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	count := uint64(0)
	for {
		b, err := readBlock(conn)
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			break
		}
		count++
		if b.Number != count {
			t.Fatalf("block %d comes as number %d", b.Number, count)
		}
	}
	if count != c.nodes[0].Status().Height {
		t.Errorf("%d of %d blocks come", count, c.nodes[0].Status().Height)
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func TestOptionsValidate(t *testing.T) {
	for name, spoil := range map[string]func(*Options){
		"signer":            func(o *Options) { o.Signer = nil },
		"directory":         func(o *Options) { o.Dir = "" },
		"queue":             func(o *Options) { o.Queue = -1 },
		"pipeline":          func(o *Options) { o.Pipeline = maxPipeline + 1 },
		"election":          func(o *Options) { o.ElectionTimeout = time.Millisecond },
		"commit interval":   func(o *Options) { o.CommitInterval = time.Hour },
		"not one of":        func(o *Options) { o.Bootstrap = []Peer{{Key: [32]byte{1}, Address: "a"}} },
		"without address":   func(o *Options) { o.Bootstrap[0].Address = "" },
		"alone":             func(o *Options) { o.Orderers.Quorum = 2 },
		"too short":         func(o *Options) { o.SnapshotCheck = 1 },
		"blocks of nothing": func(o *Options) { o.Cutter.MaxTxs = 0 },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			c := newCluster(t, 2, nil)
			opts := c.options(0, c.peers(2), c.genesis, nil)
			spoil(&opts)
			if o, err := Start(opts); err == nil {
				t.Errorf("an orderer starts with a wrong %s", name)
				_ = o.Close()
			}
			if conn, err := opts.Listener.Accept(); err == nil {
				_ = conn.Close()
				t.Error("the listener is still open")
			}
		})
	}
}
