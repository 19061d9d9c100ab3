package replica

import (
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// links are the connections to the other members.
type links struct {
	r     *Replica
	known atomic.Pointer[[]*peers] // by epoch, without gaps

	jobs    chan *job // for the workers that verify
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]struct{}
	senders map[identity.PublicKey]*sender
}

// keptEpochs is how many past configurations are remembered, for members who are
// left behind in one.
const keptEpochs = 8

// peers are the members of one configuration, as this orderer reaches and
// verifies them.
type peers struct {
	members  ordering.Membership
	self     int // -1 if it is no member
	verifier *ordering.Verifier
	senders  []*sender // by member; nil at self
}

func newLinks(r *Replica) *links {
	l := &links{
		r: r, jobs: make(chan *job, 2*r.opts.Workers.Batch),
		conns: make(map[net.Conn]struct{}), senders: make(map[identity.PublicKey]*sender),
	}
	l.known.Store(&[]*peers{})
	return l
}

// learn adds the members of the next configuration; current is the epoch of the
// machine, below which few are kept.
func (l *links) learn(m ordering.Membership, current uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*l.known.Load()), func(p *peers) bool { return p.members.Epoch+keptEpochs < current })
	list = append(list, &peers{
		members: m, self: m.Set.Index(l.r.opts.Signer.Public()),
		verifier: &ordering.Verifier{
			Protocol: l.r.opts.Protocol, Network: l.r.opts.Machine.Network, Members: m,
			Signatures: l.r.opts.Signatures, Admit: l.r.opts.Admit,
		},
	})
	l.connect(list)
	l.known.Store(&list)
}

// connect starts senders to whoever is in the list and stops those to all others.
func (l *links) connect(list []*peers) {
	wanted := make(map[identity.PublicKey]*sender)
	for _, p := range list {
		p.senders = make([]*sender, p.members.N())
		for i, key := range p.members.Set.Keys {
			if i == p.self || l.closed {
				continue
			}
			s := l.senders[key]
			if s == nil {
				s = newSender(l, key)
				l.senders[key] = s
				l.running.Go(s.run)
			}
			p.senders[i], wanted[key] = s, s
		}
	}
	for key, s := range l.senders { // any order: all that are not wanted are stopped
		if wanted[key] == nil {
			s.stop()
			delete(l.senders, key)
		}
	}
}

// epoch returns the members of a configuration; nil if it is not known.
func (l *links) epoch(n uint64) *peers {
	list := *l.known.Load()
	if len(list) == 0 || n < list[0].members.Epoch || n-list[0].members.Epoch >= uint64(len(list)) {
		return nil
	}
	return list[n-list[0].members.Epoch]
}

// send queues a message for a member of an epoch or for all others. It never
// waits.
func (l *links) send(epoch uint64, to int, m ordering.Message) {
	p := l.epoch(epoch)
	if p == nil || to != ordering.ToAll && (to < 0 || to >= len(p.senders) || p.senders[to] == nil) {
		return // to nobody, or to a member of the past
	}
	frame := encodeFrame(m)
	if to != ordering.ToAll {
		p.senders[to].queue(frame)
		return
	}
	for _, s := range p.senders {
		if s != nil {
			s.queue(frame)
		}
	}
}

// start accepts connections and verifies what comes over them.
func (l *links) start() {
	for range l.r.opts.Workers.Batch {
		l.running.Go(l.verify)
	}
	if l.r.opts.Listener != nil {
		l.running.Go(l.accept)
	}
}

// track registers a connection that close has to end; if that is over already the
// connection is closed.
func (l *links) track(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.Close()
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *links) drop(c net.Conn) {
	c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// count is the number of connections.
func (l *links) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

const (
	// greetTimeout is how long a new connection may take to say whose it is.
	greetTimeout = 10 * time.Second
	// acceptPause is the pause after a failed accept: too many open files, for
	// example.
	acceptPause = 100 * time.Millisecond
)

// maxConns bounds the connections: two for each other member, and as many that
// have not said whose they are.
func (l *links) maxConns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return 4 * (len(l.senders) + 4)
}

func (l *links) accept() {
	for {
		c, err := l.r.opts.Listener.Accept()
		switch {
		case err == nil && l.count() < l.maxConns():
			if l.track(c) {
				l.running.Go(func() { l.read(c) })
			}
		case err == nil:
			c.Close()
		case errors.Is(err, net.ErrClosed) || l.r.end.Err() != nil:
			return
		default:
			l.r.log.Warn("replica: accepting a connection", "error", err)
			l.pause(acceptPause)
		}
	}
}

// pause waits, or until the service ends.
func (l *links) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.r.end.Done():
	}
}

// close ends all connections and waits for what used them.
func (l *links) close() {
	l.mu.Lock()
	l.closed = true
	for _, s := range l.senders { // any order, here and below: all are stopped
		s.stop()
	}
	for c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	if l.r.opts.Listener != nil {
		l.r.opts.Listener.Close()
	}
	l.running.Wait()
}
