package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

var errUnexpected = errors.New("replica: the other side sends where it should read")

// ahead bounds the messages of one connection that are being verified.
const ahead = 64

// job is a message on its way through the workers that verify.
type job struct {
	from     int
	verifier *ordering.Verifier
	raw      []byte
	verified ordering.Verified
	err      error
	done     chan struct{}
}

// verify is a worker.
func (l *links) verify() {
	for {
		select {
		case j := <-l.jobs:
			j.verified, j.err = j.verifier.Verify(j.from, j.raw)
			close(j.done)
		case <-l.r.end.Done():
			return
		}
	}
}

// read takes messages from a connection until it ends or brings something that no
// honest member sends.
func (l *links) read(c net.Conn) {
	defer l.drop(c)
	_ = c.SetDeadline(time.Now().Add(greetTimeout)) // a failure shows in the next call
	key, err := l.r.opts.Identify(c)
	if err != nil {
		l.r.log.Warn("replica: refused a connection", "from", c.RemoteAddr(), "error", err)
		return
	}
	if !l.member(key) {
		l.r.log.Warn("replica: refused a connection of nobody who orders", "from", c.RemoteAddr(), "key", key)
		return
	}
	_ = c.SetDeadline(time.Time{})
	order := make(chan *job, ahead)
	l.running.Go(func() { l.deliver(c, order) })
	defer close(order)
	for {
		raw, err := readFrame(c)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				l.r.log.Warn("replica: closed a connection", "orderer", key, "error", err)
			}
			return
		}
		j := l.jobOf(key, raw)
		if j == nil {
			continue
		}
		if !l.hand(j, order) {
			return
		}
	}
}

// member reports whether a key is that of another member of any configuration
// that is known.
func (l *links) member(key identity.PublicKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.senders[key] != nil
}

// jobOf chooses the configuration that a message has to be verified against; nil
// drops it. An epoch that is not known yet is no fault: its sender is ahead.
func (l *links) jobOf(key identity.PublicKey, raw []byte) *job {
	epoch, _ := ordering.EpochOf(raw)
	p := l.epoch(epoch)
	if p == nil {
		return nil
	}
	from := p.members.Set.Index(key)
	if from < 0 || from == p.self {
		return nil
	}
	return &job{from: from, verifier: p.verifier, raw: raw, done: make(chan struct{})}
}

// hand gives a job to the workers and to those who wait for it in order.
func (l *links) hand(j *job, order chan<- *job) bool {
	select {
	case order <- j:
	case <-l.r.end.Done():
		return false
	}
	select {
	case l.jobs <- j:
		return true
	case <-l.r.end.Done():
		return false
	}
}

// deliver gives what was verified to the machine, in the order in which it was
// sent. A message that does not verify ends the connection.
func (l *links) deliver(c net.Conn, order <-chan *job) {
	for j := range order {
		select {
		case <-j.done:
		case <-l.r.end.Done():
			return
		}
		if j.err != nil {
			l.r.log.Warn("replica: an orderer sent what does not verify", "orderer", j.from, "error", j.err)
			c.Close()
			for range order { // until the reader notices
			}
			return
		}
		select {
		case l.r.machine.in <- j.verified:
		case <-l.r.end.Done():
			return
		}
	}
}

// readFrame reads the bytes of one message. Memory grows with what arrives, not
// with what the head announces.
func readFrame(c io.Reader) ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n == 0 || n > ordering.MaxMessageBytes {
		return nil, fmt.Errorf("replica: a message of %d bytes, the limit is %d", n, ordering.MaxMessageBytes)
	}
	const step = 1 << 20
	raw := make([]byte, 0, min(n, step))
	for len(raw) < n {
		from := len(raw)
		raw = append(raw, make([]byte, min(n-from, step))...)
		if _, err := io.ReadFull(c, raw[from:]); err != nil {
			return nil, fmt.Errorf("replica: a message of %d bytes ends early: %w", n, err)
		}
	}
	return raw, nil
}
