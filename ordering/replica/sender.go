package replica

import (
	"bufio"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

const (
	// A peer that cannot be reached is dialed again after a while that grows up
	// to maxRedial.
	minRedial = 20 * time.Millisecond
	maxRedial = 2 * time.Second
	// dialTimeout bounds one attempt, writeTimeout a peer that reads nothing.
	dialTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
	// maxQueuedBytes bounds the memory of a peer's queue beside PeerQueue.
	maxQueuedBytes = 256 << 20
	frameHead      = 4
)

// encodeFrame makes the bytes of a message on a connection. They are shared by
// all who get it.
func encodeFrame(m ordering.Message) []byte {
	b := m.AppendTo(make([]byte, frameHead, 512))
	binary.BigEndian.PutUint32(b, uint32(len(b)-frameHead))
	return b
}

// sender is the queue and the connection to one member.
type sender struct {
	l    *links
	key  identity.PublicKey
	ctx  context.Context
	stop context.CancelFunc

	mu      sync.Mutex
	waiting [][]byte
	bytes   int
	dropped uint64
	wake    chan struct{} // capacity 1: something waits
}

func newSender(l *links, key identity.PublicKey) *sender {
	s := &sender{l: l, key: key, wake: make(chan struct{}, 1)}
	s.ctx, s.stop = context.WithCancel(l.r.end)
	return s
}

// queue adds a message; while there is no room the oldest one makes way.
func (s *sender) queue(frame []byte) {
	s.mu.Lock()
	for len(s.waiting) > 0 && (len(s.waiting) >= s.l.r.opts.PeerQueue || s.bytes+len(frame) > maxQueuedBytes) {
		s.bytes -= len(s.waiting[0])
		s.waiting = s.waiting[1:]
		s.dropped++
	}
	s.waiting = append(s.waiting, frame)
	s.bytes += len(frame)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take returns all that waits.
func (s *sender) take() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.waiting
	s.waiting, s.bytes = nil, 0
	return list
}

// run keeps a connection and writes to it what is queued.
func (s *sender) run() {
	delay := minRedial
	for s.ctx.Err() == nil {
		c, err := s.dial()
		if err != nil {
			s.l.r.log.Debug("replica: connecting to an orderer", "orderer", s.key, "error", err)
			// With jitter: orderers that were cut off together do not come back
			// in step.
			s.sleep(delay/2 + rand.N(delay))
			delay = min(2*delay, maxRedial)
			continue
		}
		began := time.Now()
		if err := s.write(c); err != nil && s.ctx.Err() == nil {
			s.l.r.log.Debug("replica: a connection to an orderer broke", "orderer", s.key, "error", err)
		}
		s.l.drop(c)
		if time.Since(began) > maxRedial {
			delay = minRedial
			continue
		}
		// One that breaks at once was refused, which TLS 1.3 tells only after
		// the connection stands.
		s.sleep(delay/2 + rand.N(delay))
		delay = min(2*delay, maxRedial)
	}
}

func (s *sender) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

func (s *sender) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, dialTimeout)
	defer cancel()
	c, err := s.l.r.opts.Dial(ctx, s.key)
	if err != nil {
		return nil, err
	}
	if !s.l.track(c) {
		return nil, net.ErrClosed
	}
	return c, nil
}

// writeBuffer gathers small messages for one system call, and one record of TLS.
const writeBuffer = 64 << 10

// write sends what is queued until the connection breaks.
func (s *sender) write(c net.Conn) error {
	broken := make(chan error, 1)
	go func() { broken <- discard(c) }()
	w := bufio.NewWriterSize(c, writeBuffer)
	for {
		if list := s.take(); len(list) > 0 {
			if err := writeAll(c, w, list); err != nil {
				return err
			}
			continue
		}
		select {
		case <-s.wake:
		case err := <-broken:
			return err
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
}

func writeAll(c net.Conn, w *bufio.Writer, list [][]byte) error {
	for _, frame := range list {
		if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if _, err := w.Write(frame); err != nil {
			return err
		}
	}
	return w.Flush()
}

// discard notices the end of a connection over which nothing is to come.
func discard(c net.Conn) error {
	var b [1]byte
	_, err := c.Read(b[:])
	if err == nil {
		err = errUnexpected
	}
	return err
}
