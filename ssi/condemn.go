package ssi

import "slices"

// The two rules that condemn pending candidates at the commit of T rest on one
// observation, which makes their cost linear in the footprints. The set of
// pending candidates only shrinks. Once N was judged at the commit of some T,
// it is condemned itself, or all its F are, or it had none: either N is out of
// the game or it has no pending F for the rest of the block. So every N is
// judged at most once, and every cell gives up its readers at most once.

type abortDuringCommit struct{}

func (abortDuringCommit) admit(*Decider, int32) int32 { return -1 }

// committing condemns every N of t that has an F.
func (abortDuringCommit) committing(d *Decider, t int32) {
	d.collectNear(t)
	for _, n := range d.near {
		if d.firstFar(n) >= 0 {
			d.condemned = append(d.condemned, n)
		}
	}
	d.condemnNear(t)
}

type blockAware struct{}

func (blockAware) admit(*Decider, int32) int32 { return -1 }

// committing condemns every N of t that has an F before it, and of every N of t
// the F after it. Nobody pending stands before t, so "F = T" is "F before N".
func (blockAware) committing(d *Decider, t int32) {
	d.collectNear(t)
	for _, n := range d.near {
		if f := d.firstFar(n); f >= 0 && f < n {
			d.condemned = append(d.condemned, n)
		}
	}
	d.condemnNear(t)
	d.condemnFar(t)
}

// condemner is the working memory of the two rules.
type condemner struct {
	judged  []bool // candidate -> was judged as N
	drained []bool // cell -> all its readers were

	near      []int32 // the N of one commit
	condemned []int32 // those of them to condemn
}

func (m *condemner) begin(n, cells int) {
	m.judged = cleared(m.judged, n)
	m.drained = cleared(m.drained, cells)
}

// collectNear sets d.near to the pending N with N -> t not judged before.
func (d *Decider) collectNear(t int32) {
	d.near = d.near[:0]
	for _, c := range d.touchedBy(t) {
		if d.drained[c] {
			continue
		}
		d.drained[c] = true
		for _, n := range d.readersOf(c) {
			if n != t && d.state[n] == pending && !d.judged[n] {
				d.judged[n] = true
				d.near = append(d.near, n)
			}
		}
	}
}

// firstFar returns the first F with F -> n, F pending or committing just now,
// or -1.
func (d *Decider) firstFar(n int32) int32 {
	first := int32(-1)
	for _, c := range d.touchedBy(n) {
		if f := d.firstReader(c, n); f >= 0 && (first < 0 || f < first) {
			first = f
		}
	}
	return first
}

// firstReader returns the first pending reader of c other than n, or -1. It
// shortens the list of readers past all that it found not to be pending, so
// that nobody looks at them again.
func (d *Decider) firstReader(c cell, n int32) int32 {
	at, tail := d.head[c], d.tail[c]
	self := false
	for at < tail {
		r := d.readers[at]
		if r == n {
			self = true
		} else if d.state[r] == pending {
			break
		}
		at++
	}
	d.head[c] = at
	if self { // n stays in the list, as its new head
		d.head[c]--
		d.readers[d.head[c]] = n
	}
	if at == tail {
		return -1
	}
	return d.readers[at]
}

// condemnNear condemns what the rule chose among the N of t.
func (d *Decider) condemnNear(t int32) {
	for _, n := range d.condemned {
		d.abort(n, NearConflict, t)
	}
	d.condemned = d.condemned[:0]
}

// condemnFar condemns, of every N of t, the pending F after N, and shortens the
// lists of readers by them.
func (d *Decider) condemnFar(t int32) {
	for _, n := range d.near {
		for _, c := range d.touchedBy(n) {
			readers := d.readersOf(c)
			after, _ := slices.BinarySearch(readers, n+1)
			for _, f := range readers[after:] {
				if d.state[f] == pending {
					d.abort(f, FarConflict, t)
				}
			}
			d.tail[c] = d.head[c] + int32(after)
		}
	}
}

func cleared(s []bool, n int) []bool {
	if cap(s) < n {
		return make([]bool, n)
	}
	s = s[:n]
	clear(s)
	return s
}
