package ssi

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// The oracle of this file knows nothing of edges. It runs transactions against
// a small key-value store, all of them on the same state, asks for verdicts,
// and then looks for a serial order of the winners: one in which each of them,
// run alone after those before it, reads what it had read and writes what it
// had written.

// store maps live keys to values.
type store map[string]uint64

func (s store) clone() store {
	c := make(store, len(s))
	for k, v := range s {
		c[k] = v
	}
	return c
}

// program is a transaction of the toy: it reads, folds what it saw into a
// number, and writes values that depend on that number.
type program struct {
	id     uint64
	reads  []rwset.Read
	writes []int  // numbers of the keys it upserts or deletes
	delete []bool // for each write: delete a live key instead of updating it
}

// effect is what one run saw and did.
type effect struct {
	saw   string
	puts  store
	drops map[string]bool
	fp    *rwset.Footprint
}

// run executes p on s without changing s.
func (p program) run(s store) effect {
	e := effect{puts: store{}, drops: map[string]bool{}, fp: &rwset.Footprint{Reads: p.reads}}
	e.saw = p.observe(s)
	value := p.id
	for _, c := range []byte(e.saw) {
		value = (value ^ uint64(c)) * 1099511628211
	}
	for i, n := range p.writes {
		key := string(testKey(n))
		_, live := s[key]
		switch {
		case live && p.delete[i]:
			e.drops[key] = true
		default:
			e.puts[key] = value + uint64(i)
		}
		e.fp.Writes = append(e.fp.Writes, rwset.Write{Key: []byte(key), Liveness: !live || p.delete[i]})
	}
	return e
}

// observe returns everything the reads of p tell it about s: keys and values,
// or for reads for existence the keys alone.
func (p program) observe(s store) string {
	keys := make([]string, 0, len(s))
	for k := range s {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	for _, r := range p.reads {
		b.WriteByte(';')
		for _, k := range keys {
			if r.Contains([]byte(k)) {
				b.WriteString(k)
				if !r.Existence {
					fmt.Fprintf(&b, "=%x", s[k])
				}
			}
		}
	}
	return b.String()
}

func (e effect) apply(s store) {
	for k, v := range e.puts {
		s[k] = v
	}
	for k := range e.drops {
		delete(s, k)
	}
}

// randomPrograms makes the transactions of a block. A write of a key whose
// liveness decides between update, insert and delete reads that liveness.
func randomPrograms(r *rand.Rand, n, keys int) []program {
	shape := blockShape{keys: keys, spans: 30, existence: 30}
	programs := make([]program, n)
	for i := range programs {
		p := program{id: uint64(i + 1)}
		for range r.IntN(3) {
			p.reads = append(p.reads, shape.read(r))
		}
		for _, k := range r.Perm(keys)[:r.IntN(3)] {
			p.writes = append(p.writes, k)
			p.delete = append(p.delete, r.IntN(2) == 0)
			p.reads = append(p.reads, rwset.Read{Span: point(k), Existence: r.IntN(4) > 0})
		}
		programs[i] = p
	}
	return programs
}

// serialOrder returns an order of the members in which every one, run alone,
// has the effect it had, and which ends in the state their writes make.
func serialOrder(start store, programs []program, effects []effect, members []int) ([]int, bool) {
	end := start.clone()
	for _, m := range members {
		effects[m].apply(end)
	}
	want := fmt.Sprint(end)
	var try func(s store, done, left []int) ([]int, bool)
	try = func(s store, done, left []int) ([]int, bool) {
		if len(left) == 0 {
			return done, fmt.Sprint(s) == want
		}
		for i, m := range left {
			if programs[m].observe(s) != effects[m].saw {
				continue
			}
			next := s.clone()
			programs[m].run(s).apply(next)
			rest := append(append([]int(nil), left[:i]...), left[i+1:]...)
			if order, ok := try(next, append(done[:len(done):len(done)], m), rest); ok {
				return order, true
			}
		}
		return nil, false
	}
	return try(start, nil, members)
}

// toyBlock runs random programs on a random state.
func toyBlock(r *rand.Rand) (store, []program, []effect, []Candidate) {
	keys := 2 + r.IntN(6)
	start := store{}
	for k := range keys {
		if r.IntN(3) > 0 {
			start[string(testKey(k))] = uint64(k)
		}
	}
	programs := randomPrograms(r, 2+r.IntN(5), keys)
	effects := make([]effect, len(programs))
	order := make([]Candidate, len(programs))
	for i, p := range programs {
		effects[i] = p.run(start)
		order[i] = Candidate{Footprint: effects[i].fp, Excluded: r.IntN(20) == 0}
	}
	return start, programs, effects, order
}

// TestSerialOrderExists tries all serial orders on the toy store.
func TestSerialOrderExists(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	commits, total := 0, 0
	for range 12000 {
		start, programs, effects, order := toyBlock(r)
		for _, rule := range rules {
			members := committedOf(Decide(rule, order))
			if _, ok := serialOrder(start, programs, effects, members); !ok {
				t.Fatalf("%v: no serial order of %v explains\n%s", rule, members, describe(order))
			}
			commits += len(members)
			total += len(order)
		}
	}
	if commits*3 < total || commits*10 > total*9 {
		t.Errorf("%d of %d commit: the blocks show nothing", commits, total)
	}
}

// TestOracleFindsFaults plants errors in the verdicts; an oracle that accepts
// them would prove nothing.
func TestOracleFindsFaults(t *testing.T) {
	faults := map[string]func(order []Candidate) []int{
		"everybody commits": func(order []Candidate) []int {
			return committedOf(naiveDecideBy(order, nil, nil))
		},
		"only write-write conflicts": func(order []Candidate) []int {
			return committedOf(naiveDecideBy(order, naiveWriteWrite, nil))
		},
		"reads for existence ignored": func(order []Candidate) []int {
			return committedOf(Decide(Exact, withoutReads(order, func(r rwset.Read) bool { return !r.Existence })))
		},
		"spans ignored": func(order []Candidate) []int {
			return committedOf(Decide(Exact, withoutReads(order, rwset.Read.IsPoint)))
		},
		"upper bound off": func(order []Candidate) []int {
			return committedOf(Decide(Exact, withShorterSpans(order)))
		},
		"cycles of two only": func(order []Candidate) []int {
			return committedOf(naiveDecideBy(order, naiveWriteWrite, func(a, b *rwset.Footprint) bool {
				return naiveConflict(a, b) && naiveConflict(b, a)
			}))
		},
	}
	for name, decide := range faults {
		r := rand.New(rand.NewPCG(6, 0))
		found := false
		for round := 0; round < 6000 && !found; round++ {
			start, programs, effects, order := toyBlock(r)
			_, ok := serialOrder(start, programs, effects, decide(order))
			found = !ok
		}
		if !found {
			t.Errorf("the oracle does not notice: %s", name)
		}
	}
}

// naiveDecideBy commits everybody who is in conflict with no earlier winner.
func naiveDecideBy(order []Candidate, conflicts ...func(a, b *rwset.Footprint) bool) []Verdict {
	verdicts := make([]Verdict, len(order))
next:
	for i, c := range order {
		if c.Excluded {
			continue
		}
		for j := range i {
			for _, conflict := range conflicts {
				if conflict != nil && verdicts[j].Commit && conflict(c.Footprint, order[j].Footprint) {
					continue next
				}
			}
		}
		verdicts[i].Commit = true
	}
	return verdicts
}

func withoutReads(order []Candidate, keep func(rwset.Read) bool) []Candidate {
	out := make([]Candidate, len(order))
	for i, c := range order {
		fp := &rwset.Footprint{Writes: c.Footprint.Writes}
		for _, r := range c.Footprint.Reads {
			if keep(r) {
				fp.Reads = append(fp.Reads, r)
			}
		}
		out[i] = Candidate{Footprint: fp, Excluded: c.Excluded}
	}
	return out
}

func withShorterSpans(order []Candidate) []Candidate {
	out := withoutReads(order, func(rwset.Read) bool { return true })
	for _, c := range out {
		for i, r := range c.Footprint.Reads {
			if n := len(r.End); !r.IsPoint() && n > 0 && r.End[n-1] == 0 {
				c.Footprint.Reads[i].End = r.End[:n-1]
			}
		}
	}
	return out
}
