package ssi

import "slices"

type exact struct{}

func (exact) committing(d *Decider, t int32) {
	for _, c := range d.touchedBy(t) {
		d.written[c] = true
	}
}

// admit looks for a cycle through t among the committed, against the direction
// of the edges: from the readers of what t writes to the readers of what those
// write, until a cell turns up that t itself entered.
func (exact) admit(d *Decider, t int32) int32 {
	if !d.readsCommitted(t) {
		return -1 // no edge leaves t
	}
	d.roots = d.roots[:0]
	for _, c := range d.touchedBy(t) {
		for _, r := range d.readersOf(c) {
			if r >= t {
				break
			}
			if d.state[r] == committed {
				d.roots = append(d.roots, r)
			}
		}
	}
	slices.Sort(d.roots)
	for _, r := range d.roots {
		// What an earlier root has visited does not come from t.
		if d.comesFrom(r, t) {
			return r
		}
	}
	return -1
}

// cycles is the working memory of the exact rule.
type cycles struct {
	written  []bool  // cell -> a committed transaction touches it
	roots    []int32 // the committed N with N -> t
	stack    []int32
	seenTx   []int32 // last search that visited the transaction, by its t
	seenCell []int32
}

func (m *cycles) begin(n, cells int) {
	m.written = cleared(m.written, cells)
	m.seenTx = filled(m.seenTx, n, -1)
	m.seenCell = filled(m.seenCell, cells, -1)
}

// readsCommitted reports whether t -> y for some committed y.
func (d *Decider) readsCommitted(t int32) bool {
	for _, c := range d.enteredBy(t) {
		if d.written[c] {
			return true
		}
	}
	return false
}

// comesFrom reports whether committed edges lead from t to root.
func (d *Decider) comesFrom(root, t int32) bool {
	d.stack = d.visit(d.stack[:0], root, t)
	for len(d.stack) > 0 {
		x := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		for _, c := range d.touchedBy(x) {
			if d.seenCell[c] == t {
				continue
			}
			d.seenCell[c] = t
			for _, r := range d.readersOf(c) {
				if r == t {
					return true
				}
				if r > t {
					break
				}
				if d.state[r] == committed {
					d.stack = d.visit(d.stack, r, t)
				}
			}
		}
	}
	return false
}

// visit pushes x unless the search for t has been there.
func (d *Decider) visit(stack []int32, x, t int32) []int32 {
	if d.seenTx[x] == t {
		return stack
	}
	d.seenTx[x] = t
	return append(stack, x)
}
