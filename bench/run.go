package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Target carries out operations. Clients are numbered from 0; a target may keep
// a connection for each. Do is called by one goroutine a client.
type Target interface {
	// Prepare makes what can be made in advance of an operation: a signed
	// transaction. What it returns is handed to Do. It may return nil.
	Prepare(client int, op *Op) (any, error)
	// Do carries the operation out and tells how it ended. An error is the end
	// of the run.
	Do(ctx context.Context, client int, op *Op, prepared any) (Outcome, error)
}

// Outcome is how an operation ended.
type Outcome struct {
	// Abort names why it has to be tried again: a rule, or the SQLSTATE where
	// the rule is not known. Empty if it need not.
	Abort string
	// Failed is the SQLSTATE of its own error; empty if it had none.
	Failed string
}

// Options of a run.
type Options struct {
	Clients  int
	Warmup   time.Duration
	Duration time.Duration
	Seed     uint64
	Scale    int     // rows; 0 = the workload's own
	Rate     float64 // operations a second of all clients, arriving at random; 0 = closed loop
	// Operations ends the run after this many of each client; 0 = when the time
	// is over.
	Operations int
	// Presigned has this many operations signed before the clock starts, and no
	// more of them than that are carried out; 0 signs each when its turn comes.
	Presigned int
	Retry     bool // an aborted operation is tried again until it is not
}

// Validate reports why a run cannot be like this.
func (o *Options) Validate() error {
	switch {
	case o.Clients < 1:
		return errors.New("bench: at least one client is needed")
	case o.Duration <= 0 || o.Warmup < 0:
		return errors.New("bench: a run takes time")
	case o.Rate < 0 || o.Presigned < 0 || o.Operations < 0:
		return errors.New("bench: rate and numbers of operations must not be negative")
	case o.Presigned > 0 && o.Rate > 0:
		return errors.New("bench: transactions signed in advance are for the closed loop")
	}
	return nil
}

// Run measures a workload whose schema and rows are there.
func Run(ctx context.Context, w *Workload, t Target, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &runner{target: t, opts: o, clients: make([]client, o.Clients)}
	for i := range r.clients {
		r.clients[i] = newClient(i, w.Source(o.Seed, i, o.Scale))
	}
	if err := r.presign(); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

type runner struct {
	target  Target
	opts    Options
	clients []client
	start   time.Time // of what counts
	stop    time.Time
	due     *arrivals // nil in the closed loop
}

// client is one goroutine's part; nothing of it is shared while it runs.
type client struct {
	number  int
	source  Source
	ahead   []signed // operations signed in advance
	latency *Latency
	tally   tally
	err     error
}

type signed struct {
	op       Op
	prepared any
}

func newClient(i int, s Source) client {
	return client{number: i, source: s, latency: NewLatency(), tally: newTally()}
}

// presign signs the operations of all clients.
func (r *runner) presign() error {
	if r.opts.Presigned == 0 {
		return nil
	}
	each := (r.opts.Presigned + len(r.clients) - 1) / len(r.clients)
	return r.all(func(c *client) error {
		c.ahead = make([]signed, 0, each)
		for range each {
			op := c.source()
			p, err := r.target.Prepare(c.number, &op)
			if err != nil {
				return err
			}
			c.ahead = append(c.ahead, signed{op, p})
		}
		return nil
	})
}

// all runs f for every client at once.
func (r *runner) all(f func(*client) error) error {
	var wg sync.WaitGroup
	for i := range r.clients {
		wg.Go(func() { r.clients[i].err = f(&r.clients[i]) })
	}
	wg.Wait()
	for i := range r.clients {
		if err := r.clients[i].err; err != nil {
			return fmt.Errorf("bench: client %d: %w", i, err)
		}
	}
	return nil
}

func (r *runner) run(ctx context.Context) (*Report, error) {
	began := time.Now()
	r.start = began.Add(r.opts.Warmup)
	r.stop = r.start.Add(r.opts.Duration)
	if r.opts.Rate > 0 {
		r.due = newArrivals(r.opts.Seed, r.opts.Rate, began)
	}
	err := r.all(func(c *client) error { return r.loop(ctx, c) })
	if err != nil {
		return nil, err
	}
	return r.report(min(time.Since(r.start), r.opts.Duration)), nil
}

// loop is the life of a client. Operations signed in advance end it early when
// there are no more.
func (r *runner) loop(ctx context.Context, c *client) error {
	for i := 0; r.opts.Operations == 0 || i < r.opts.Operations; i++ {
		begin := time.Now()
		if r.due != nil {
			begin = r.due.next()
			if begin.After(r.stop) {
				return nil
			}
			time.Sleep(time.Until(begin))
		}
		if !begin.Before(r.stop) || ctx.Err() != nil {
			return ctx.Err()
		}
		var next signed
		switch {
		case c.ahead == nil:
			next.op = c.source()
		case i < len(c.ahead):
			next = c.ahead[i]
		default:
			return nil
		}
		if err := r.one(ctx, c, &next, begin); err != nil {
			return err
		}
	}
	return nil
}

// one carries out an operation, again and again if it aborts and that is asked
// for, and counts what ended inside of the measured time.
func (r *runner) one(ctx context.Context, c *client, s *signed, begin time.Time) error {
	for {
		out, err := r.target.Do(ctx, c.number, &s.op, s.prepared)
		if err != nil {
			return err
		}
		end := time.Now()
		if counted := !end.Before(r.start) && end.Before(r.stop); counted {
			c.tally.add(s.op.Name, &out)
			if out.Abort == "" {
				c.latency.Record(end.Sub(begin))
			}
		}
		if out.Abort == "" || !r.opts.Retry || !end.Before(r.stop) {
			return nil
		}
		s.prepared = nil // another attempt is another transaction
	}
}
