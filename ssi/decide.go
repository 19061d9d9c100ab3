package ssi

import "slices"

// Decide returns the verdicts over one block, in the order of the candidates.
// Whoever decides many blocks keeps a [Decider].
func Decide(rule Rule, order []Candidate) []Verdict {
	return new(Decider).Decide(rule, order)
}

// Decider decides blocks, one at a time, and keeps its working memory from one
// to the next. The zero value is ready. It is not safe for concurrent use.
type Decider struct {
	index
	state    []state
	verdicts []Verdict

	// winner is the committed writer of each key, -1 without one.
	winner []int32

	condemner
	cycles
}

// state is where a candidate stands while the block is decided.
type state uint8

const (
	out       state = iota // excluded, aborted or condemned
	pending                // its turn has not come, or is now
	committed              // final
)

// policy is a [Rule] at work. The Decider calls admit when a candidate's turn
// has come and nothing else stands against it, and then, if it was admitted,
// committing, while the candidate still counts as pending: "F is pending or F
// is T" is one question.
type policy interface {
	// admit returns -1 to let t commit, else the committed transaction that
	// closes a cycle with it.
	admit(d *Decider, t int32) int32
	// committing condemns pending candidates because t commits.
	committing(d *Decider, t int32)
}

var policies = [...]policy{
	AbortDuringCommit: abortDuringCommit{},
	BlockAware:        blockAware{},
	Exact:             exact{},
}

// Decide is as the function [Decide]; the result is the caller's to keep. It
// panics if rule is none of the three.
func (d *Decider) Decide(rule Rule, order []Candidate) []Verdict {
	p := policies[rule]
	d.begin(order)
	for t := range int32(len(order)) {
		if d.state[t] == pending {
			d.turn(p, t)
		}
	}
	verdicts := d.verdicts
	d.verdicts = nil
	d.release()
	return verdicts
}

func (d *Decider) begin(order []Candidate) {
	d.build(order)
	d.winner = filled(d.winner, d.keys.len(), -1)
	d.verdicts = make([]Verdict, len(order))
	d.state = slices.Grow(d.state[:0], len(order))[:len(order)]
	for t := range order {
		d.verdicts[t].With = -1
		d.state[t] = pending
		if order[t].Excluded {
			d.state[t] = out
		}
	}
	d.condemner.begin(len(order), d.cells())
	d.cycles.begin(len(order), d.cells())
}

// turn decides a candidate that is pending when its turn has come.
func (d *Decider) turn(p policy, t int32) {
	if w := d.writeConflict(t); w >= 0 {
		d.abort(t, WriteWrite, w)
		return
	}
	if with := p.admit(d, t); with >= 0 {
		d.abort(t, Cycle, with)
		return
	}
	for _, w := range d.writesOf(t) {
		d.winner[w.key] = t
	}
	p.committing(d, t)
	d.state[t] = committed
	d.verdicts[t].Commit = true
}

// writeConflict returns the earliest committed transaction that wrote a key t
// writes, or -1.
func (d *Decider) writeConflict(t int32) int32 {
	first := int32(-1)
	for _, w := range d.writesOf(t) {
		if c := d.winner[w.key]; c >= 0 && (first < 0 || c < first) {
			first = c
		}
	}
	return first
}

func (d *Decider) abort(t int32, cause Cause, with int32) {
	d.state[t] = out
	d.verdicts[t].Cause = cause
	d.verdicts[t].With = int(with)
}
