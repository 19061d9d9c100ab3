package replica

import (
	"fmt"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
)

const (
	// inputs bounds the verified messages that wait for the machine.
	inputs = 4096
	// burst is how many inputs the machine takes before it is asked what to do.
	burst = 256
)

// driver is the goroutine of the machine. What it holds is its own.
type driver struct {
	r        *Replica
	machine  ordering.Machine
	cutter   *cutter.Cutter // nil where Done does not count
	held     []*block.Tx    // taken from the queue, not by the machine yet
	schedule *block.Schedule
	durable  uint64 // last block that the machine was told of
	began    time.Time

	in   chan ordering.Verified
	wake chan struct{} // capacity 1: blocks became durable or done
}

func newDriver(r *Replica, m ordering.Machine) (*driver, error) {
	d := &driver{
		r: r, machine: m, schedule: r.opts.Schedule, durable: r.opts.Tip.Number, began: time.Now(),
		in: make(chan ordering.Verified, inputs), wake: make(chan struct{}, 1),
	}
	if !r.opts.IgnoreDone {
		d.cutter = cutter.New(r.opts.Cutter, 1) // its numbers are nobody's
	}
	epoch := r.opts.Machine.Members.Epoch
	for _, e := range d.schedule.Entries() {
		members := membership(&e)
		if members.Epoch+keptEpochs >= epoch {
			r.links.learn(members, epoch)
		}
		if members.Epoch <= epoch {
			continue
		}
		// An earlier block brought it, and it is not in force yet.
		if err := d.announce(members); err != nil {
			return nil, err
		}
	}
	d.look()
	return d, nil
}

func (d *driver) announce(next ordering.Membership) error {
	if err := d.machine.Reconfigure(next); err != nil {
		return fmt.Errorf("replica: configuration %d: %w", next.Epoch, err)
	}
	return nil
}

// nudge has the driver look at what is durable and done.
func (d *driver) nudge() {
	select {
	case d.wake <- struct{}{}:
	default: // a wake-up is on its way and will see the new values
	}
}

// run drives the machine until the service ends.
func (d *driver) run() {
	defer close(d.r.output.readies)
	ticker := time.NewTicker(d.r.opts.Tick)
	defer ticker.Stop()
	d.machine.Tick(d.r.opts.Clock())
	for {
		if err := d.turn(); err != nil {
			d.r.stop(err)
			return
		}
		select {
		case v := <-d.in:
			d.machine.Step(v)
			d.drain()
		case tx := <-d.intake():
			d.hold(tx)
		case <-ticker.C:
			d.machine.Tick(d.r.opts.Clock())
		case <-d.wake:
		case <-d.r.end.Done():
			return
		}
	}
}

// drain steps with what else has come.
func (d *driver) drain() {
	for range burst {
		select {
		case v := <-d.in:
			d.machine.Step(v)
		default:
			return
		}
	}
}

// turn passes on what is known and carries out what the machine wants.
func (d *driver) turn() error {
	if h := d.r.tail.Height(); h > d.durable {
		d.durable = h
		d.machine.Advance(h)
	}
	d.feed()
	rd := d.machine.Ready()
	if rd.Fault != nil {
		return fmt.Errorf("replica: the orderer must not go on: %w", rd.Fault)
	}
	for i := range rd.Decided {
		if err := d.decided(rd.Decided[i].Block); err != nil {
			return err
		}
	}
	d.look()
	if rd.Empty() {
		return nil
	}
	select {
	case d.r.output.readies <- rd:
		return nil
	case <-d.r.end.Done():
		return nil
	}
}

// decided follows the configurations in a block.
func (d *driver) decided(b *block.Block) error {
	known := len(d.schedule.Entries())
	if _, err := d.schedule.Advance(b); err != nil {
		return err
	}
	for _, e := range d.schedule.Entries()[known:] {
		members := membership(&e)
		d.r.links.learn(members, d.machine.Status().Epoch)
		if err := d.announce(members); err != nil {
			return err
		}
	}
	return nil
}

// look publishes the machine's status.
func (d *driver) look() {
	s := d.machine.Status()
	d.r.status.Store(&s)
	waiting := len(d.held)
	if d.cutter != nil {
		waiting = d.cutter.Waiting()
	}
	d.r.waiting.Store(int64(waiting))
}

// intake is the queue, unless what was taken from it must wait: then
// transactions wait there, and once it is full in Submit.
func (d *driver) intake() <-chan *block.Tx {
	if len(d.held) > 0 || d.cutter != nil && d.cutter.Full() {
		return nil
	}
	return d.r.queue
}

// hold takes a transaction from the queue, and what else is there.
func (d *driver) hold(tx *block.Tx) {
	d.take(tx)
	for range d.r.opts.Cutter.MaxTxs - 1 {
		if d.cutter != nil && d.cutter.Full() {
			return
		}
		select {
		case tx := <-d.r.queue:
			d.take(tx)
		default:
			return
		}
	}
}

func (d *driver) take(tx *block.Tx) {
	if d.cutter != nil {
		d.cutter.Add(tx, d.now())
		return
	}
	d.held = append(d.held, tx)
}

// now is the cutter's time: microseconds that never run backwards.
func (d *driver) now() int64 { return time.Since(d.began).Microseconds() }

// feed hands transactions over as far as the machine has room.
func (d *driver) feed() {
	for d.cut() {
		taken := d.machine.Submit(d.held)
		d.held = d.held[taken:]
		if len(d.held) > 0 {
			return
		}
		d.held = nil
	}
}

// cut makes sure that held has something to hand over, if anything is due.
func (d *driver) cut() bool {
	if len(d.held) > 0 || d.cutter == nil {
		return len(d.held) > 0
	}
	d.look()
	s := d.r.status.Load()
	// What was handed over and is in no batch yet counts as a block.
	flight := d.r.inFlight(s)
	if s.Waiting > 0 {
		flight++
	}
	d.cutter.InFlight(flight)
	batch, ok := d.cutter.Cut(d.now())
	if !ok && d.ending() {
		batch, ok = d.cutter.Flush()
	}
	d.held = batch.Txs
	return ok
}

// ending reports whether Close waits for what was accepted.
func (d *driver) ending() bool {
	select {
	case <-d.r.closing:
		return true
	default:
		return false
	}
}
