package chain

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestDistrust: a chain that a scrub has convicted processes no block, says why, and
// does so after a restart.
func TestDistrust(t *testing.T) {
	s, good, bad, fs := pairOf(t, 20)
	key, v, value := bad.storedRow(5)
	bad.tamper(fs, key, v, anotherValue(value))
	r, err := bad.chain.Scrub(context.Background(), ScrubOptions{BytesPerSecond: 1 << 40})
	if err != nil || len(r.Damage) != 1 {
		t.Fatalf("the scrub found %v, %v", r.Damage, err)
	}
	if err := bad.chain.Halted(); err != nil {
		t.Fatalf("halted before anybody said so: %v", err)
	}
	if err := bad.chain.Distrust(r.Damage[0]); err != nil {
		t.Fatal(err)
	}
	b := s.block(s.tx(alice, "greet", "x"))
	mustCommit(t, good.process(b))
	for range 2 {
		var diverged *Divergence
		if _, err := bad.chain.Process(b); !errors.As(err, &diverged) || bad.chain.Height() != b.Number-1 {
			t.Fatalf("it processes a block: %v", err)
		}
		verdict := diverged.Verdict()
		if verdict.Code != "XX001" || !strings.Contains(verdict.Detail, r.Damage[0].Error()) || diverged.Damage.Key != "(5)" {
			t.Errorf("clients hear %s, %s", verdict.Message, verdict.Detail)
		}
		bad.reopen()
	}
}

// TestDamageNamesTheExposed: what a scrub finds in a node that a checkpoint has
// exposed is added to what is known, and takes nothing away.
func TestDamageNamesTheExposed(t *testing.T) {
	s, good, bad, fs := pairOf(t, 20)
	key, v, value := bad.storedRow(5)
	bad.tamper(fs, key, v, anotherValue(value))
	b := s.block(s.tx(alice, "transfer", int64(1), 5, 3, num("1")))
	mustCommit(t, good.process(b))
	bad.process(b)
	last := b.Number
	b = s.agree(good, last)
	good.process(b)
	bad.process(b)
	exposed(t, s, bad, last)
	r, err := bad.chain.Scrub(context.Background(), ScrubOptions{BytesPerSecond: 1 << 40})
	if err != nil || len(r.Damage) == 0 {
		t.Fatalf("the scrub found %v, %v", r.Damage, err)
	}
	if err := bad.chain.Distrust(r.Damage[0]); err != nil {
		t.Fatal(err)
	}
	exposed(t, s, bad, last)
	d := bad.chain.Diverged()
	if d.Damage == nil || d.Damage.Table != "accounts" || d.Damage.Key != "(5)" || d.Damage.Block != v.Block {
		t.Errorf("it names %v, not account 5 of block %d", d.Damage, v.Block)
	}
}

// TestScrubBesideBlocks: scrubs of an intact store find nothing while blocks change
// the rows that they read.
func TestScrubBesideBlocks(t *testing.T) {
	s, good, _, _ := pairOf(t, 300)
	ctx, stop := context.WithCancel(context.Background())
	var scrubs sync.WaitGroup
	count := 0
	scrubs.Go(func() {
		for ; ctx.Err() == nil || count == 0; count++ {
			if r, err := good.chain.Scrub(context.Background(), ScrubOptions{BytesPerSecond: 1 << 40}); err != nil || len(r.Damage) > 0 {
				t.Errorf("scrub %d: %v, %v", count, r.Damage, err)
				return
			}
		}
	})
	for i := range 60 {
		mustCommit(t, good.process(s.block(s.tx(alice, "transfer", int64(i+10), 1+i, 200, num("1")))))
	}
	stop()
	scrubs.Wait()
	t.Logf("%d scrubs beside 60 blocks", count)
}

// TestScrubRate: a scrub waits if it is ahead of its rate, in all its parts, and ends
// with its context while it waits.
func TestScrubRate(t *testing.T) {
	p := &pacer{ctx: context.Background(), rate: 1 << 40, start: time.Now()}
	if err := p.spent(1 << 20); err != nil || p.read != 1<<20 || p.looked != p.read {
		t.Errorf("%+v, %v", p, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p = &pacer{ctx: ctx, rate: 1, start: time.Now()}
	if err := p.spent(1000); err != nil || p.looked != 0 {
		t.Errorf("it looks at the clock for 1000 bytes: %+v, %v", p, err)
	}
	time.AfterFunc(10*time.Millisecond, stop)
	if err := p.spent(1 << 30); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait of a thousand years ended with %v", err)
	}
}
