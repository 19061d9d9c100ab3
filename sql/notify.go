package sql

import (
	"context"
	"slices"
	"sync"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Notification is what NOTIFY sends. PID is that of the connection that sent
// it; 0 is the node itself.
type Notification struct {
	Channel, Payload string
	PID              int32
}

// maxInbox bounds the notifications that wait for one session. Delivery is at
// most once: what does not fit is dropped. The ledger is where nothing is lost.
const maxInbox = 10000

// hub knows which sessions of a node listen to which channels.
type hub struct {
	mu        sync.Mutex
	listeners map[string][]*Session // in the order of LISTEN
}

// Listening tells whether any session listens to a channel.
func (e *Engine) Listening(channel string) bool {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	return len(e.hub.listeners[channel]) > 0
}

// Notify sends a notification to the sessions that listen to the channel. It may
// be called by any goroutine and does not wait for anybody.
func (e *Engine) Notify(channel, payload string, pid int32) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	for _, s := range e.hub.listeners[channel] {
		s.inbox.put(Notification{channel, payload, pid}, s.opts.Wake)
	}
}

func (h *hub) listen(s *Session, channel string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == nil {
		h.listeners = map[string][]*Session{}
	}
	if !slices.Contains(h.listeners[channel], s) {
		h.listeners[channel] = append(h.listeners[channel], s)
	}
}

func (h *hub) unlisten(s *Session, channel string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.listeners[channel]
	if i := slices.Index(list, s); i >= 0 {
		// A new list: Notify may not see one that changes.
		h.listeners[channel] = slices.Delete(slices.Clone(list), i, i+1)
	}
	if len(h.listeners[channel]) == 0 {
		delete(h.listeners, channel)
	}
}

// inbox holds the notifications that a session has not taken yet.
type inbox struct {
	mu   sync.Mutex
	list []Notification
}

// put adds a notification; the first one wakes the session's connection.
func (b *inbox) put(n Notification, wake func()) {
	b.mu.Lock()
	first := len(b.list) == 0
	if len(b.list) < maxInbox {
		b.list = append(b.list, n)
	}
	b.mu.Unlock()
	if first && wake != nil {
		wake()
	}
}

// TakeNotifications returns the notifications that have arrived and forgets
// them. In a transaction block there are none: clients are told afterwards.
func (s *Session) TakeNotifications() []Notification {
	if s.block.open {
		return nil
	}
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	list := s.inbox.list
	s.inbox.list = nil
	return list
}

// noteKind says what a transaction has asked for.
type noteKind uint8

const (
	noteListen noteKind = iota
	noteUnlisten
	noteUnlistenAll
	noteNotify
)

// note is a LISTEN, UNLISTEN or NOTIFY that takes effect when its transaction
// commits.
type note struct {
	kind             noteKind
	channel, payload string
	depth            int // how many savepoints stood
}

// queue keeps a note until the transaction commits: the block, or the statement
// that runs on its own. Of equal notifications one counts.
func (s *Session) queue(n note) {
	n.depth = len(s.block.savepoints)
	if n.kind == noteNotify {
		for _, o := range s.notes {
			if o.kind == noteNotify && o.channel == n.channel && o.payload == n.payload && o.depth <= n.depth {
				return
			}
		}
	}
	s.notes = append(s.notes, n)
}

// sendNotes makes the notes of a transaction that commits take effect: first who
// listens, then what is sent.
func (s *Session) sendNotes() {
	notes := s.notes
	s.notes = nil
	for _, n := range notes {
		switch n.kind {
		case noteListen:
			if !slices.Contains(s.channels, n.channel) {
				s.channels = append(s.channels, n.channel)
				s.engine.hub.listen(s, n.channel)
			}
		case noteUnlisten:
			if i := slices.Index(s.channels, n.channel); i >= 0 {
				s.channels = slices.Delete(s.channels, i, i+1)
				s.engine.hub.unlisten(s, n.channel)
			}
		case noteUnlistenAll:
			s.unlistenAll()
		}
	}
	for _, n := range notes {
		if n.kind == noteNotify {
			s.engine.Notify(n.channel, n.payload, s.opts.PID)
		}
	}
}

func (s *Session) unlistenAll() {
	for _, c := range s.channels {
		s.engine.hub.unlisten(s, c)
	}
	s.channels = nil
}

// statementEnded settles the notes of a statement outside a block.
func (s *Session) statementEnded(err error) {
	switch {
	case s.block.open || len(s.notes) == 0:
	case err == nil:
		s.sendNotes()
	default:
		s.notes = nil
	}
}

// analyzeNote is LISTEN, UNLISTEN or NOTIFY.
func (s *Session) analyzeNote(p *Prepared, n note, tag string) error {
	if len(n.payload) >= 8000 {
		return pgerr.New(pgerr.InvalidParameterValue, "payload string too long")
	}
	p.run = func(context.Context, []datum.Datum) (rowSource, error) {
		s.queue(n)
		return done(tag), nil
	}
	return nil
}

func unlistenNote(n *pg.UnlistenStmt) note {
	if n.Conditionname == "" {
		return note{kind: noteUnlistenAll}
	}
	return note{kind: noteUnlisten, channel: n.Conditionname}
}

// notifyFunc is pg_notify().
func (s *Session) notifyFunc(channel, payload string) error {
	s.queue(note{kind: noteNotify, channel: channel, payload: payload})
	return nil
}

func (s *Session) listening() []string { return slices.Clone(s.channels) }
