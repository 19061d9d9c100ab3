package exec

import (
	"errors"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
)

// The batch engine runs the part of a local query that reads many rows and makes
// few: a scan, then filters, projections and hash joins with small inner sides,
// then grouping. Rows go through it in columns, batchSize at a time, and with two
// workers where there are many. Contracts never run it: they count steps row by
// row. What it answers, and in which order, is what the row engine answers; it
// hands a query over to that one (errUseRows) when it would need more memory than
// work_mem.

// batchSize is how many rows a batch has at most.
const batchSize = 1024

// errUseRows ends the work of the batch engine: the row engine begins anew.
// Nothing was returned yet, and a local query reads the same again.
var errUseRows = errors.New("exec: the batch engine gives up")

// batch is rows in columns.
type batch struct {
	n    int            // rows
	sel  []int32        // those that are left, in order
	cols []datum.Column // by slot
	// match gives the inner row of the last join for every row of sel, if inner
	// keys are unique there.
	match []int32
}

func newBatch(slots int) *batch {
	return &batch{sel: make([]int32, 0, batchSize), cols: make([]datum.Column, slots)}
}

// all selects all of n rows.
func (b *batch) all(n int) {
	b.n, b.sel = n, b.sel[:0]
	for i := range n {
		b.sel = append(b.sel, int32(i))
	}
}

// vecRun is the working memory of one worker.
type vecRun struct {
	f    *frame
	ctx  *builtin.Ctx
	cols []datum.Column // results of expressions
	// ready tells which of cols hold an invariant of this run already.
	ready  []bool
	args   []datum.Datum
	sels   [][]int32 // spare selections, by nesting
	stages []stageState
	sink   batchSink
}

// batchSink takes the rows that leave the last stage.
type batchSink interface {
	take(v *vecRun, b *batch) error
}

// takeSel lends a spare selection; giveSel gives it back.
func (v *vecRun) takeSel() []int32 {
	if n := len(v.sels); n > 0 {
		s := v.sels[n-1]
		v.sels = v.sels[:n-1]
		return s[:0]
	}
	return make([]int32, 0, batchSize)
}

func (v *vecRun) giveSel(s []int32) { v.sels = append(v.sels, s) }

// newColumns makes the columns that the expressions of a pipeline compute into.
func newColumns(fixed []bool) []datum.Column {
	cols := make([]datum.Column, len(fixed))
	for i, ints := range fixed {
		cols[i] = columnOf(ints, batchSize)
	}
	return cols
}

func columnOf(fixed bool, n int) datum.Column {
	if fixed {
		return datum.Column{Ints: make([]int64, n), Nulls: make([]bool, n)}
	}
	return datum.Column{Data: make([]datum.Datum, n)}
}
