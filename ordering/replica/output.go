package replica

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
)

const (
	// readiesAhead bounds how many Readies share a sync.
	readiesAhead = 64
	// decidedAhead bounds how many blocks share a sync, and the memory of
	// blocks that wait for one.
	decidedAhead = 64
	// servedAtOnce bounds the blocks that one request brings, and requests those
	// that wait: the member asks again for the rest.
	servedAtOnce = 64
	requests     = 64
)

// output carries out what the machine wants done.
type output struct {
	r       *Replica
	readies chan ordering.Ready // closed by the driver
	decided chan *block.Block
	wanted  chan ordering.Range // closed with decided
	group   []ordering.Ready
}

func newOutput(r *Replica) *output {
	return &output{
		r: r, readies: make(chan ordering.Ready, readiesAhead),
		decided: make(chan *block.Block, decidedAhead), wanted: make(chan ordering.Range, requests),
	}
}

// run syncs records before anything of the same Ready leaves the process.
func (o *output) run() {
	defer close(o.decided)
	defer close(o.wanted)
	for first := range o.readies {
		o.gather(first)
		if err := o.r.records.write(o.group); err != nil {
			o.r.stop(err)
			return
		}
		for i := range o.group {
			o.carryOut(&o.group[i])
		}
		clear(o.group)
	}
}

// gather collects the Readies that are there.
func (o *output) gather(first ordering.Ready) {
	o.group = append(o.group[:0], first)
	for len(o.group) < readiesAhead {
		select {
		case next, ok := <-o.readies:
			if !ok {
				return
			}
			o.group = append(o.group, next)
		default:
			return
		}
	}
}

func (o *output) carryOut(rd *ordering.Ready) {
	for i := range rd.Send {
		o.r.links.send(rd.Epoch, rd.Send[i].To, rd.Send[i].Message)
	}
	for i := range rd.Decided {
		select {
		case o.decided <- rd.Decided[i].Block:
		case <-o.r.end.Done():
			return
		}
	}
	for _, w := range rd.Serve {
		select {
		case o.wanted <- w:
		default: // it will ask again
		}
	}
}

// serve sends blocks that members lack, as far as they are durable here. Reading
// them holds nobody up.
func (o *output) serve() {
	for w := range o.wanted {
		upto := min(w.Upto, o.r.tail.Height(), w.From+servedAtOnce-1)
		if next := o.r.links.epoch(w.Epoch + 1); next != nil {
			upto = min(upto, next.members.First-1) // what the member can verify
		}
		for h := w.From; h <= upto; h++ {
			b, err := o.r.durable(h)
			if err != nil {
				o.r.stop(err)
				return
			}
			if m := o.r.opts.Protocol.Serve(b, w.Epoch); m != nil {
				o.r.links.send(w.Epoch, w.To, m)
			}
		}
	}
}

// execute makes decided blocks durable, all that were decided during one sync with
// the next one, and only then lets subscribers and the machine see them.
func (o *output) execute() {
	for b := range o.decided {
		group := []*block.Block{b}
		for more := true; more && len(group) < decidedAhead; {
			select {
			case next, ok := <-o.decided:
				if ok {
					group = append(group, next)
				}
				more = ok
			default:
				more = false
			}
		}
		if err := o.r.opts.Persist(group); err != nil {
			o.r.stop(fmt.Errorf("replica: persisting block %d: %w", group[0].Number, err))
			return
		}
		o.r.tail.Advance(group)
		o.r.machine.nudge()
	}
}
