package orderingtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/sql/pgerr"
)

type starter = func(Setup) *Cluster

// testTotalOrder: many submit to all members at once, and all members deliver
// the same blocks, with every transaction in exactly one place.
func testTotalOrder(t *testing.T, start starter) {
	const clients, each = 8, 60
	c := start(usual)
	txs := NewTxMaker(c.Network).Some(clients * each)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for _, tx := range txs[i*each : (i+1)*each] {
				if err := c.Members[i%len(c.Members)].Submit(t.Context(), tx); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var first []*block.Tx
	for i, m := range c.Members {
		got := c.read(t, m, 0, true).txs(len(txs))
		sameSet(t, txs, got)
		if i == 0 {
			first = got
		} else {
			sameOrder(t, first, got)
		}
	}
	wg.Wait()
	// One client's transactions keep their order: it awaited each Submit.
	place := places(first)
	for i := 1; i < len(txs); i++ {
		if i%each != 0 && len(c.Members) == 1 && place[txs[i-1].ID()] > place[txs[i].ID()] {
			t.Fatalf("client %d is overtaken by itself", i/each)
		}
	}
}

// testDeliverFromAnyHeight: the same blocks from every height on, also from
// those that do not exist yet.
func testDeliverFromAnyHeight(t *testing.T, start starter) {
	c := start(usual)
	m := c.Members[0]
	maker := NewTxMaker(c.Network)
	all := c.read(t, m, 0, true)
	hashes := []block.Hash{all.block().Hash()}
	one := func() {
		submit(t, m, maker.Next())
		hashes = append(hashes, all.block().Hash())
	}
	const before, after = 100, 5 // more than anybody keeps in memory
	for range before {
		one()
	}
	var readers []*reader
	for from := block.Height(0); from <= before+after; from += 3 {
		readers = append(readers, c.read(t, m, from, false))
	}
	for range after {
		one()
	}
	for i, r := range readers {
		for h := 3 * i; h <= before+after; h++ {
			if got := r.block().Hash(); got != hashes[h] {
				t.Fatalf("block %d has hash %s for one subscriber and %s for another", h, got, hashes[h])
			}
		}
	}
	if got := m.Status().Height; got != before+after {
		t.Errorf("status says height %d, want %d", got, before+after)
	}
}

// testResubmission: handing a transaction in again, anywhere, at once or after
// it was ordered, has no second effect.
func testResubmission(t *testing.T, start starter) {
	c := start(usual)
	maker := NewTxMaker(c.Network)
	r := c.read(t, c.Members[0], 1, true)
	txs := maker.Some(30)
	for range 3 {
		for _, m := range c.Members {
			submit(t, m, txs...)
		}
	}
	got := r.txs(len(txs))
	sameSet(t, txs, got)
	for _, m := range c.Members {
		submit(t, m, txs...) // what is ordered long ago
		again, err := block.DecodeTx(append([]byte(nil), txs[0].Encode()...))
		if err != nil {
			t.Fatal(err)
		}
		submit(t, m, again) // the same in other memory
	}
	last := maker.Next()
	submit(t, c.Members[0], last)
	sameSet(t, []*block.Tx{last}, r.txs(1))
}

// testFalseSignature: a copy of a transaction with a false signature has the
// same id and must not keep the genuine one out.
func testFalseSignature(t *testing.T, start starter) {
	c := start(usual)
	r := c.read(t, c.Members[0], 1, true)
	tx := NewTxMaker(c.Network).Next()
	raw := append([]byte(nil), tx.Encode()...)
	raw[len(raw)-1] ^= 1
	forged, err := block.DecodeTx(raw)
	if err != nil {
		t.Fatal(err)
	}
	if forged.ID() != tx.ID() {
		t.Fatal("the id covers the signature")
	}
	submit(t, c.Members[0], forged, tx)
	for {
		for _, got := range r.block().Txs {
			if got.Signature == tx.Signature {
				return
			}
		}
	}
}

// testRefusals: what no block may contain is refused at once.
func testRefusals(t *testing.T, start starter) {
	c := start(usual)
	m := c.Members[0]
	maker := NewTxMaker(c.Network)
	r := c.read(t, m, 1, true)
	submit(t, m, maker.Next())
	r.block()

	foreign, expired := maker.Next(), maker.Next()
	foreign.Network[0] ^= 1
	expired.ValidUntil = 1
	for _, tx := range []*block.Tx{maker.Sign(foreign), maker.Sign(expired)} {
		if err := m.Submit(t.Context(), tx); pgerr.CodeOf(err) != pgerr.InvalidTransactionState {
			t.Errorf("a transaction that cannot be valid: %v", err)
		}
	}
	last := maker.Next()
	last.ValidUntil = 2
	submit(t, m, maker.Sign(last))
	sameSet(t, []*block.Tx{last}, r.txs(1))
}

// testRestart: number, hash and time go on where they stopped, and what was
// ordered before is remembered.
func testRestart(t *testing.T, start starter) {
	c := start(usual)
	maker := NewTxMaker(c.Network)
	old := maker.Some(25)
	submit(t, c.Members[0], old...)
	sameSet(t, old, c.read(t, c.Members[0], 1, true).txs(len(old)))
	tip := c.Members[0].Status().Height

	c = c.Restart()
	m := c.Members[0]
	r := c.read(t, m, 0, true)
	fresh := maker.Next()
	submit(t, m, append(append([]*block.Tx(nil), old...), fresh)...)
	sameSet(t, append(append([]*block.Tx(nil), old...), fresh), r.txs(len(old)+1))
	if got := m.Status().Height; got != tip+1 {
		t.Errorf("height %d after the restart and one block, want %d", got, tip+1)
	}
}

// testRestartUnderLoad: whatever was delivered stays, at the same place, and
// clients who hand in again what they have not seen lose nothing.
func testRestartUnderLoad(t *testing.T, start starter) {
	c := start(usual)
	txs := NewTxMaker(c.Network).Some(400)
	var before []block.Hash
	for round := range 4 {
		m := c.Members[0]
		r := c.read(t, m, 1, true)
		for _, hash := range before {
			if got := r.block().Hash(); got != hash {
				t.Fatalf("round %d: block %d has changed", round, r.last.Number)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, tx := range txs[:100*(round+1)] {
				if m.Submit(t.Context(), tx) != nil {
					return // it ends
				}
			}
		})
		for range 4 {
			before = append(before, r.block().Hash())
		}
		next := c.Restart()
		wg.Wait()
		c = next
	}
	submit(t, c.Members[0], txs...)
	sameSet(t, txs, c.read(t, c.Members[0], 1, true).txs(len(txs)))
}

// testSlowSubscriber: one that never returns from its first block holds nobody
// up, and finds everything afterwards.
func testSlowSubscriber(t *testing.T, start starter) {
	c := start(usual)
	m := c.Members[0]
	slow := c.read(t, m, 1, false) // nobody takes its blocks for now
	fast := c.read(t, m, 1, true)
	txs := NewTxMaker(c.Network).Some(1500) // beyond any buffer of blocks
	submit(t, m, txs...)
	got := fast.txs(len(txs))
	sameSet(t, txs, got)
	sameOrder(t, got, slow.txs(len(txs)))
}

// testSubscriberEnds: Deliver returns the subscriber's error, or its context's.
func testSubscriberEnds(t *testing.T, start starter) {
	c := start(usual)
	m := c.Members[0]
	submit(t, m, NewTxMaker(c.Network).Some(3)...)

	enough := errors.New("enough")
	if err := m.Deliver(t.Context(), 0, func(*block.Block) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("Deliver returns %v instead of the subscriber's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Deliver(ctx, 1<<40, func(*block.Block) error { return nil }) }()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Deliver returns %v instead of its context's error", err)
		}
	case <-time.After(patience):
		t.Error("Deliver goes on after its context is done")
	}
}

// testBackPressure: while the node does not process blocks, no more than the
// limit are cut and no more than the queue is accepted; then all is as before.
func testBackPressure(t *testing.T, start starter) {
	c := start(Setup{
		Cutter: cutter.Config{MaxTxs: 5, MaxBytes: 1 << 20, Timeout: 1000, Pipeline: 1, MaxInFlight: 2},
		Queue:  20,
	})
	m := c.Members[0]
	r := c.read(t, m, 1, false)
	txs := NewTxMaker(c.Network).Some(400)
	accepted := 0
	for _, tx := range txs {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := m.Submit(ctx, tx)
		cancel()
		if err != nil {
			if code := pgerr.CodeOf(err); !strings.HasPrefix(string(code), "53") {
				t.Fatalf("without room: %v", err)
			}
			break
		}
		accepted++
	}
	if accepted == len(txs) {
		t.Fatalf("all of %d transactions are accepted while no block is processed", accepted)
	}
	if got := m.Status(); got.InFlight > 2 || got.Waiting == 0 {
		t.Errorf("%d blocks in flight with a limit of 2, %d transactions waiting", got.InFlight, got.Waiting)
	}
	// Now the rest is handed in, the refused one first, while blocks are
	// processed.
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, tx := range txs[accepted:] {
			if err := m.Submit(t.Context(), tx); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var got []*block.Tx
	for len(got) < len(txs) {
		b := r.block()
		got = append(got, b.Txs...)
		m.Done(b.Number)
	}
	wg.Wait()
	sameSet(t, txs, got)
}

// testIdleCutsAtOnce: with nothing in flight a transaction waits neither for
// others nor for time.
func testIdleCutsAtOnce(t *testing.T, start starter) {
	c := start(Setup{Cutter: cutter.Config{MaxTxs: 100, MaxBytes: 1 << 20, Timeout: int64(time.Hour / time.Microsecond), Pipeline: 1}})
	m := c.Members[0]
	maker := NewTxMaker(c.Network)
	r := c.read(t, m, 1, false)
	for range 3 {
		submit(t, m, maker.Next())
		b := r.block()
		submit(t, m, maker.Next())
		r.nothing("the pipeline is busy and neither size nor time demands a block")
		m.Done(b.Number)
		m.Done(r.block().Number)
	}
}

// testBusyCutsByTimeout: the timeout holds even if nothing is ever processed.
func testBusyCutsByTimeout(t *testing.T, start starter) {
	c := start(Setup{Cutter: cutter.Config{MaxTxs: 100, MaxBytes: 1 << 20, Timeout: 20_000, Pipeline: 1}})
	m := c.Members[0]
	maker := NewTxMaker(c.Network)
	r := c.read(t, m, 1, false)
	for range 4 {
		tx := maker.Next()
		submit(t, m, tx)
		sameSet(t, []*block.Tx{tx}, r.txs(1))
	}
}

// testLimitsOfBlocks: no block exceeds the limits in number and bytes unless a
// single transaction does.
func testLimitsOfBlocks(t *testing.T, start starter) {
	const maxTxs, maxBytes = 7, 2500
	c := start(Setup{Cutter: cutter.Config{MaxTxs: maxTxs, MaxBytes: maxBytes, Timeout: 3000}})
	m := c.Members[0]
	maker := NewTxMaker(c.Network)
	txs := maker.Some(200)
	for i, tx := range txs {
		if i%3 == 0 {
			tx.Call.ArgTypes, tx.Call.Args = []string{"bytea"}, []block.Arg{{Value: make([]byte, i*20)}}
			maker.Sign(tx)
		}
	}
	r := c.read(t, m, 1, true)
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, tx := range txs {
			if err := m.Submit(t.Context(), tx); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var got []*block.Tx
	for len(got) < len(txs) {
		b := r.block()
		bytes := 0
		for _, tx := range b.Txs {
			bytes += block.TxSizeInBlock(tx)
		}
		if len(b.Txs) > maxTxs || bytes > maxBytes && len(b.Txs) > 1 || len(b.Txs) == 0 {
			t.Fatalf("block %d has %d transactions of %d bytes", b.Number, len(b.Txs), bytes)
		}
		got = append(got, b.Txs...)
	}
	wg.Wait()
	sameSet(t, txs, got)
}

// places returns where each transaction stands.
func places(txs []*block.Tx) map[block.TxID]int {
	at := make(map[block.TxID]int, len(txs))
	for i, tx := range txs {
		at[tx.ID()] = i
	}
	return at
}

// sameSet checks that got is a permutation of want.
func sameSet(t *testing.T, want, got []*block.Tx) {
	t.Helper()
	left := places(want)
	for _, tx := range got {
		if _, ok := left[tx.ID()]; !ok {
			t.Fatalf("transaction %s is delivered twice or was never submitted", tx.ID())
		}
		delete(left, tx.ID())
	}
	if len(left) > 0 {
		t.Fatalf("%d of %d transactions are missing", len(left), len(want))
	}
}

// sameOrder checks that two sequences are equal.
func sameOrder(t *testing.T, want, got []*block.Tx) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d transactions for one and %d for another", len(want), len(got))
	}
	for i := range want {
		if want[i].ID() != got[i].ID() {
			t.Fatalf("transaction %d differs between two subscribers", i)
		}
	}
}
