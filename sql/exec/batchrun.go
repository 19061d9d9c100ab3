package exec

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/datum"
)

const (
	// parallelFrom is after how many rows of a scan a second worker joins in.
	parallelFrom = 16 * batchSize
	// parallelParts is into how many pieces the rest of the scan is then divided.
	parallelParts = 32
	// placeBits is how far apart the places of rows in different pieces are.
	placeBits = 40
)

func (p *batchAggProg) iter() rowIter { return &batchAggIter{p: p} }

// batchAggIter runs an aggregate in the batch engine, or hands it to the row
// engine.
type batchAggIter struct {
	p     *batchAggProg
	row   *aggregateIter // the row engine's, once it was needed
	byRow bool
	sink  *aggSink
	order []int32 // groups to hand out
	at    int
	held  int64
	ended bool
}

func (it *batchAggIter) open(f *frame) error {
	it.release(f)
	it.ended, it.at = false, 0
	it.byRow = f.env.Ctx.Tx != nil || !f.env.Store(it.p.scan.table).MayBulk(f.mode == mvcc.ReadUnrecorded)
	if it.byRow {
		return it.useRows(f)
	}
	return nil
}

func (it *batchAggIter) useRows(f *frame) error {
	it.byRow = true
	if it.row == nil {
		it.row = it.p.row.iter().(*aggregateIter)
	}
	return it.row.open(f)
}

func (it *batchAggIter) release(f *frame) {
	f.release(it.held)
	it.sink, it.order, it.held = nil, nil, 0
}

func (it *batchAggIter) close() {
	if it.row != nil {
		it.row.close()
	}
	it.sink, it.order, it.held = nil, nil, 0
}

func (it *batchAggIter) next(f *frame) (bool, error) {
	if !it.byRow && it.sink == nil {
		if err := it.fill(f); err != nil {
			return false, err
		}
	}
	if it.byRow {
		return it.row.next(f)
	}
	if it.at == len(it.order) {
		return false, nil
	}
	if err := f.row(); err != nil {
		return false, err
	}
	g := int(it.order[it.at])
	it.at++
	for i, slot := range it.p.row.groupOut {
		f.slots[slot] = it.sink.keys.row(g)[i]
	}
	for i, a := range it.sink.aggs {
		d, err := a.result(&f.env.Ctx, g)
		if err != nil {
			return false, err
		}
		f.slots[it.p.aggs[i].out] = d
	}
	return true, nil
}

// fill reads all input, or finds that the row engine has to.
func (it *batchAggIter) fill(f *frame) error {
	before := f.held
	run := batchRun{p: it.p, f: f, txn: f.env.Store(it.p.scan.table)}
	sink, err := run.run()
	if errors.Is(err, errUseRows) {
		f.release(f.held - before)
		return it.useRows(f)
	}
	if err != nil {
		return err
	}
	it.sink, it.order, it.held = sink, sink.order(), f.held-before
	return nil
}

// batchRun is one execution of a pipeline.
type batchRun struct {
	p    *batchAggProg
	f    *frame
	txn  *mvcc.Txn
	set  spanSet
	stop atomic.Bool // a worker failed
}

// worker is one goroutine's part of it.
type worker struct {
	run  *batchRun
	v    *vecRun
	sink *aggSink
	b    *batch
	bulk *mvcc.Bulk
	lent datum.Lent
	rows int // read so far
	err  error
	part int // where err came up
}

func (r *batchRun) newWorker(f *frame) *worker {
	p := r.p
	w := &worker{run: r, sink: p.newSink(), b: newBatch(len(f.slots))}
	w.v = &vecRun{f: f, ctx: &f.env.Ctx, cols: newColumns(p.fixed), ready: make([]bool, len(p.fixed)),
		stages: make([]stageState, p.joins), sink: w.sink}
	for _, c := range p.scanCols {
		w.b.cols[c.slot] = columnOf(c.fixed, batchSize)
	}
	return w
}

func (r *batchRun) run() (sink *aggSink, err error) {
	if err := r.set.build(r.f, r.p.scan); err != nil {
		return nil, err
	}
	w := r.newWorker(r.f)
	defer func() {
		if w.bulk != nil {
			err = errors.Join(err, w.bulk.Close())
		}
	}()
	for i := range r.set.spans {
		s := &r.set.spans[i]
		span := s.rwset()
		if s.point() {
			span = rwset.Point(s.start)
		}
		if err := w.start(span); err != nil {
			return nil, err
		}
		last := i == len(r.set.spans)-1 && r.p.parallel
		ended, err := w.scan(last)
		if err != nil {
			return nil, err
		}
		if !ended {
			return w.sink, r.beside(w)
		}
	}
	return w.sink, nil
}

// start begins to read a span.
func (w *worker) start(span rwset.Span) (err error) {
	if w.bulk == nil {
		w.bulk, err = w.run.txn.Bulk(span)
		return err
	}
	w.bulk.Reset(span)
	return nil
}

// scan reads rows to the end of the span; if pause is set, to where a second
// worker is worth its cost, and tells whether it reached the end.
func (w *worker) scan(pause bool) (ended bool, err error) {
	p := w.run.p
	for !w.run.stop.Load() {
		if pause && w.rows >= parallelFrom {
			return false, nil
		}
		for _, c := range p.scanCols {
			w.b.cols[c.slot].Clear()
		}
		w.lent.Reset()
		n := 0
		for n < batchSize {
			ok, err := w.bulk.Next()
			if err != nil {
				return false, err
			}
			if !ok {
				break
			}
			if err := p.scan.decoder.DecodeColumns(w.bulk.Value(), n, w.b.cols, &w.lent); err != nil {
				return false, err
			}
			n++
		}
		if n > 0 {
			w.b.all(n)
			w.b.match = nil
			w.rows += n
			if err := w.v.look(); err != nil {
				return false, err
			}
			if err := w.v.pass(w.b, p.stages); err != nil {
				return false, err
			}
		}
		if n < batchSize {
			return true, nil
		}
	}
	return true, nil
}

// beside reads the rest of the last span with a second worker. Which worker reads
// which piece changes nothing: rows keep their places in the order of all.
func (r *batchRun) beside(w *worker) error {
	parts, err := w.bulk.Rest(parallelParts)
	if err != nil {
		return err
	}
	// The second worker shares the tables of the joins.
	for _, s := range r.p.stages {
		if j, ok := s.(*joinStage); ok && w.v.stages[j.at].join == nil {
			if w.v.stages[j.at].join, err = j.build(w.v); err != nil {
				return err
			}
		}
	}
	var next atomic.Int64
	other := r.newWorker(r.helperFrame())
	for i := range other.v.stages {
		other.v.stages[i].join = w.v.stages[i].join
	}
	var wait sync.WaitGroup
	wait.Go(func() { other.pieces(parts, &next) })
	w.pieces(parts, &next)
	wait.Wait()
	if other.bulk != nil {
		err = other.bulk.Close()
	}
	if first := earlier(w, other); first != nil {
		return errors.Join(first, err)
	}
	if err != nil {
		return err
	}
	return w.sink.absorb(w.v, other.sink)
}

// earlier is the error that came up first in the order of rows.
func earlier(a, b *worker) error {
	if a.err == nil || b.err != nil && b.part < a.part {
		return b.err
	}
	return a.err
}

// pieces takes one piece after the other until none is left.
func (w *worker) pieces(parts []rwset.Span, next *atomic.Int64) {
	for {
		i := int(next.Add(1)) - 1
		if i >= len(parts) || w.run.stop.Load() {
			return
		}
		w.sink.at = int64(i+1) << placeBits
		err := w.start(parts[i])
		if err == nil {
			_, err = w.scan(false)
		}
		runtime.Gosched() // the other one may be waiting to begin
		if err != nil {
			w.err, w.part = err, i
			w.run.stop.Store(true)
			return
		}
	}
}

// helperFrame makes the frame of a second worker. What it runs reads neither the
// store nor the session.
func (r *batchRun) helperFrame() *frame {
	f := r.f
	env := &Env{Ctx: f.env.Ctx, Catalog: f.env.Catalog, Interrupted: f.env.Interrupted, Role: f.env.Role,
		ReadOnly: true, PrivateReadOnly: true, Limits: f.env.Limits, WorkMem: f.env.WorkMem}
	return &frame{env: env, params: f.params, mode: f.mode, slots: slices.Clone(f.slots), args: make([]datum.Datum, len(f.args))}
}
