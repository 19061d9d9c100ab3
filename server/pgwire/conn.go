package pgwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// conn is one connection. Its goroutine owns everything but the fields under
// mu.
type conn struct {
	srv     *Server
	log     *slog.Logger
	nc      net.Conn
	tls     *tls.ConnectionState
	in      *reader
	out     *writer
	pid     int32
	key     []byte
	minor   int // of the protocol version
	session *sql.Session

	portals map[string]*portal
	// skip: an extended message failed; everything up to Sync is ignored.
	skip bool
	// pending: extended messages have come in since the last Sync.
	pending bool

	// reported holds the settings as the client knows them; changed and changes
	// those that differ since, and their order.
	reported map[string]string
	changed  map[string]string
	changes  []string

	messages, countedIn, countedOut int64

	admitted bool // guarded by srv.mu

	mu       sync.Mutex
	ctx      context.Context
	cancel   context.CancelCauseFunc
	running  bool // a statement may be running under ctx
	busy     bool // not between two statements of the client
	draining bool // leave as soon as not busy
	started  bool // there is a session
	woken    bool // a deadline was set to deliver notifications
}

func newConn(s *Server, nc net.Conn, pid int32, key []byte) *conn {
	c := &conn{
		srv: s, nc: nc, pid: pid, key: key, busy: true,
		log:      s.cfg.Logger.With("pid", pid, "client", nc.RemoteAddr().String()),
		portals:  make(map[string]*portal),
		reported: make(map[string]string), changed: make(map[string]string),
	}
	c.ctx, c.cancel = context.WithCancelCause(s.base)
	c.setStream(nc)
	return c
}

// setStream makes the connection read and write through rw, which is the
// socket or TLS on top of it.
func (c *conn) setStream(rw io.ReadWriter) {
	c.in = newReader(rw, c.srv.cfg.MaxMessage)
	c.out = &writer{w: rw}
}

// serve is the goroutine of the connection.
func (c *conn) serve() {
	defer c.close()
	_ = c.nc.SetDeadline(time.Now().Add(c.srv.cfg.StartupTimeout))
	if err := c.startup(); err != nil {
		c.refuse(err)
		return
	}
	_ = c.nc.SetDeadline(time.Time{})
	for c.await() {
		if err := c.idle(); err != nil {
			c.readFailed(err)
			return
		}
		typ, body, err := c.in.next()
		if err != nil {
			c.readFailed(err)
			return
		}
		c.received()
		if c.skip && typ != 'S' && typ != 'X' {
			continue
		}
		if typ == 'X' {
			return
		}
		if err := c.dispatch(typ, body); err != nil {
			c.fail(err, true)
			return
		}
		if c.out.err != nil {
			return
		}
	}
	c.fail(errShutdown(), false)
}

// refuse ends a connection that did not get a session.
func (c *conn) refuse(err error) {
	if gone(err) || c.out.err != nil {
		c.log.Debug("connection ended during startup", "error", err)
		return
	}
	e, internal := explain(c.srv.base, err)
	if internal {
		c.log.Error("connection failed", "error", err)
	}
	c.fail(fatalError{e}, false)
}

// readFailed ends a connection whose stream broke off or makes no sense.
func (c *conn) readFailed(err error) {
	if e, ok := pgerr.From(err); ok {
		c.log.Info("protocol violation", "error", err)
		c.fail(fatalError{e}, true)
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.fail(errShutdown(), false)
		return
	}
	c.log.Debug("connection lost", "error", err)
}

// fail tells the client why the connection ends; sending means that it may be
// in the middle of sending something.
func (c *conn) fail(err error, sending bool) {
	var f fatalError
	if !errors.As(err, &f) {
		return
	}
	c.sendError("FATAL", f.report)
	_ = c.nc.SetWriteDeadline(time.Now().Add(linger))
	if c.out.flush() == nil && sending {
		c.lingerClose()
	}
}

// linger is how long a client that is still sending gets to read why it is cut
// off: closing at once would reset the connection and lose the message.
const linger = time.Second

// lingerBytes bounds what is read meanwhile.
const lingerBytes = 64 << 20

func (c *conn) lingerClose() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(linger))
	_, _ = io.CopyN(io.Discard, c.nc, lingerBytes)
}

// close is the end of the connection, whatever led to it.
func (c *conn) close() {
	if err := c.closeSession(); err != nil {
		c.log.Error("closing the session failed", "error", err)
	}
	c.cancel(errDone)
	_ = c.nc.Close()
	c.count()
	c.srv.forget(c)
}

func (c *conn) closeSession() (err error) {
	defer c.contain(&err)
	c.closePortals()
	if c.session != nil {
		c.session.Close()
	}
	return nil
}

// contain, deferred, turns a panic into an error that ends this connection
// alone.
func (c *conn) contain(err *error) {
	p := recover()
	if p == nil {
		return
	}
	c.srv.metrics.panics.Add(1)
	c.log.Error("panic in a statement", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = fatalError{pgerr.New(pgerr.InternalError, "internal error: the server failed on this statement").
		WithHint("The server's log tells more. Other connections are not affected.")}
}

// await declares the connection idle, unless the client is in the middle of a
// sequence of extended messages. False: the server shuts down.
func (c *conn) await() bool {
	if c.pending {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return false
	}
	c.started, c.busy = true, false
	return true
}

func (c *conn) received() {
	c.messages++
	if c.pending {
		return
	}
	c.mu.Lock()
	c.busy = true
	c.mu.Unlock()
}

// drain asks the connection to leave once it is idle.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	switch {
	case !c.started:
		_ = c.nc.Close() // nothing was promised yet
	case !c.busy:
		_ = c.nc.SetReadDeadline(time.Now())
	}
}

// wake ends a wait for the client, busy or not.
func (c *conn) wake() { _ = c.nc.SetReadDeadline(time.Now()) }

// begin marks that a statement runs, so that it can be canceled, and returns
// its context.
func (c *conn) begin() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = true
	return c.ctx
}

// finish is the opposite of begin. A cancellation that hit a statement must not
// hit the next one.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
	if c.ctx.Err() != nil && c.srv.base.Err() == nil {
		c.ctx, c.cancel = context.WithCancelCause(c.srv.base)
	}
}

// interrupt cancels the statement that is running, if there is one.
func (c *conn) interrupt(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		c.cancel(cause)
	}
}

// dispatch carries out one message. A returned error ends the connection;
// errors of statements are reported and forgotten.
func (c *conn) dispatch(typ byte, body []byte) (err error) {
	defer c.contain(&err)
	switch typ {
	case 'Q':
		return c.simple(body)
	case 'F':
		return c.functionCall()
	case 'd', 'c', 'f':
		// A client that sends data after its COPY failed has not seen the error
		// yet: ignored, as in PostgreSQL.
		return nil
	case 'H':
		return c.out.flush()
	case 'S':
		c.skip, c.pending = false, false
		return c.settle()
	}
	return c.extendedMessage(typ, body)
}

func (c *conn) functionCall() error {
	err := pgerr.NotBuilt("the function call protocol message is not supported").WithHint("Use SELECT to call the function.")
	if err := c.statementFailed(c.srv.base, err); err != nil {
		return err
	}
	return c.settle()
}

// settle ends the implicit transaction, and with it its portals, and tells the
// client that it is its turn. Outside a block a session holds nothing else
// beyond a statement: a call has committed when it returns, and queries read.
func (c *conn) settle() error {
	if c.session.TxStatus() == 'I' {
		c.closePortals()
	}
	c.ready()
	return nil
}

// ready sends the settings that changed, ReadyForQuery, and all that was
// collected before.
func (c *conn) ready() {
	for _, name := range c.changes {
		if v := c.changed[name]; v != c.reported[name] {
			c.reported[name] = v
			c.out.send(&pgproto3.ParameterStatus{Name: name, Value: v})
		}
	}
	if len(c.changes) > 0 {
		c.changes = c.changes[:0]
		clear(c.changed)
	}
	c.notifications()
	c.out.readyForQuery(c.session.TxStatus())
	_ = c.out.flush() // the loop looks at out.err
	c.count()
}

// count adds what happened since the last call to the server's counters.
func (c *conn) count() {
	m := &c.srv.metrics
	m.messages.Add(c.messages)
	m.in.Add(c.in.bytes - c.countedIn)
	m.out.Add(c.out.bytes - c.countedOut)
	c.messages, c.countedIn, c.countedOut = 0, c.in.bytes, c.out.bytes
}

// parameter notes that a reported setting changed; since PostgreSQL 14 clients
// are told when the statement is over.
func (c *conn) parameter(name, value string) {
	if _, ok := c.changed[name]; !ok {
		c.changes = append(c.changes, name)
	}
	c.changed[name] = value
}

// notice puts a NoticeResponse between the answers.
func (c *conn) notice(severity string, e *pgerr.Error) {
	r := pgproto3.NoticeResponse(response(severity, e))
	c.out.send(&r)
}

func (c *conn) sendError(severity string, e *pgerr.Error) {
	c.srv.metrics.errors.Add(1)
	r := response(severity, e)
	c.out.send(&r)
}

// statementFailed reports an error of a statement that ran under ctx and tells
// the session. What it returns, if not nil, ends the connection.
func (c *conn) statementFailed(ctx context.Context, err error) error {
	if c.out.err != nil {
		return c.out.err
	}
	if errors.As(err, new(lostError)) {
		return err
	}
	var end fatalError
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &end) {
		return end
	}
	e, internal := explain(ctx, err)
	if internal {
		c.log.Error("statement failed inside", "error", err)
	}
	c.session.Fail(err)
	c.sendError("ERROR", e)
	return nil
}
