package replica

import "time"

// flushInterval is how often Close looks whether everything is ordered.
const flushInterval = 5 * time.Millisecond

// flush waits until nothing that was accepted is left to be ordered.
func (r *Replica) flush() {
	deadline := time.NewTimer(r.opts.FlushTimeout)
	defer deadline.Stop()
	look := time.NewTicker(flushInterval)
	defer look.Stop()
	for !r.idle() {
		r.machine.nudge()
		select {
		case <-look.C:
		case <-deadline.C:
			return
		case <-r.end.Done():
			return
		}
	}
}

// idle reports whether all that came in has become durable. It is asked twice in
// a row, since a transaction may be between two of the places.
func (r *Replica) idle() bool {
	for range 2 {
		m := r.status.Load()
		if len(r.queue) > 0 || r.waiting.Load() > 0 || m.Waiting > 0 || m.InFlight > 0 || r.tail.Height() < m.Height {
			return false
		}
	}
	return true
}
