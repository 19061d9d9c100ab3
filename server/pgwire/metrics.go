package pgwire

import "sync/atomic"

// Metrics is a snapshot of what a server counted since it started.
type Metrics struct {
	Accepted    int64 // connections accepted
	Refused     int64 // connections turned away: too many, shutting down
	Connections int64 // sessions now
	Messages    int64 // messages received
	Errors      int64 // ErrorResponses sent
	Cancels     int64 // cancel requests with a valid key
	Panics      int64 // panics contained
	BytesIn     int64
	BytesOut    int64
}

type counters struct {
	accepted, refused, messages, errors, cancels, panics, in, out atomic.Int64
}

// Metrics returns the counters of the server. Bytes and messages are added up
// whenever a connection becomes ready for a query.
func (s *Server) Metrics() Metrics {
	s.mu.Lock()
	sessions := len(s.sessions)
	s.mu.Unlock()
	m := &s.metrics
	return Metrics{
		Accepted: m.accepted.Load(), Refused: m.refused.Load(), Connections: int64(sessions),
		Messages: m.messages.Load(), Errors: m.errors.Load(), Cancels: m.cancels.Load(), Panics: m.panics.Load(),
		BytesIn: m.in.Load(), BytesOut: m.out.Load(),
	}
}
