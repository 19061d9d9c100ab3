package wallet

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

const (
	// proxyConnections bounds the clients of a wallet.
	proxyConnections = 100
	// startupTimeout bounds the time until a client is connected with the node.
	startupTimeout = time.Minute
	// maxMessage is more than any message that a node takes or sends.
	maxMessage = 64 << 20
	// signTimeout is how long the node may take to accept a signature.
	signTimeout = time.Minute
	// maxStartup is PostgreSQL's bound for startup packets.
	maxStartup = 10000

	sslRequestCode = 80877103
	gssRequestCode = 80877104
	cancelCode     = 80877102
)

// ProxyOptions say for whom a wallet in a process of its own signs, and where the
// node is.
type ProxyOptions struct {
	Network block.Hash
	User    identity.UserID
	// Sign signs a transaction with the user's key.
	Sign func(tx *block.Tx) error
	Node string // host:port
	TLS  *tls.Config
	// Session makes sessions that evaluate constants: see package server.
	Session func(settings [][2]string) *sql.Session
	// TrustNode signs arguments as the node has understood them, unchecked.
	TrustNode bool
	Logger    *slog.Logger
}

// Proxy passes connections of PostgreSQL clients on to a node, and signs the calls
// of contracts that they make.
type Proxy struct {
	opts  ProxyOptions
	check checker
	slots chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	ends  sync.WaitGroup
}

// NewProxy makes a proxy.
func NewProxy(opts ProxyOptions) *Proxy {
	return &Proxy{opts: opts, slots: make(chan struct{}, proxyConnections), conns: map[net.Conn]struct{}{},
		check: checker{network: opts.Network, user: opts.User, clock: time.Now, session: opts.Session, trust: opts.TrustNode}}
}

// Serve accepts clients until ctx ends, closes their connections and returns nil,
// or the error of the listener. It closes l.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		nc, err := l.Accept()
		if err != nil {
			p.mu.Lock()
			for c := range p.conns { // any order
				_ = c.Close()
			}
			p.mu.Unlock()
			p.ends.Wait()
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case p.slots <- struct{}{}:
			p.ends.Go(func() {
				defer func() { <-p.slots }()
				p.serve(ctx, nc)
			})
		default:
			_ = nc.Close()
		}
	}
}

func (p *Proxy) track(c net.Conn) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
	return func() {
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
		_ = c.Close()
	}
}

// serve is one client.
func (p *Proxy) serve(ctx context.Context, nc net.Conn) {
	defer p.track(nc)()
	log := p.opts.Logger.With("client", nc.RemoteAddr())
	_ = nc.SetDeadline(time.Now().Add(startupTimeout))
	params, err := p.startup(ctx, nc)
	if err != nil {
		refuseClient(nc, err)
		return
	}
	if params == nil {
		return // a request to cancel, or nobody
	}
	s := &proxied{p: p, log: log, client: nc, in: newIntents(), settings: map[string]string{}}
	if err := s.connect(ctx, params); err != nil {
		log.Warn("no connection to the node", "node", p.opts.Node, "error", err)
		refuseClient(nc, pgerr.New(pgerr.CannotConnectNow, "the wallet cannot reach the node at %s", p.opts.Node).WithDetail("%v", err))
		return
	}
	_ = nc.SetDeadline(time.Time{})
	s.run(ctx)
}

// refuseClient tells a client why it does not come in.
func refuseClient(nc net.Conn, err error) {
	e, ok := pgerr.From(err)
	if !ok {
		return
	}
	m := &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: string(e.Code), Message: e.Message, Detail: e.Detail, Hint: e.Hint}
	if b, err := m.Encode(nil); err == nil {
		_, _ = nc.Write(b) // it is gone anyway
	}
}

// startup reads startup packets until one asks for a session. Nil is a connection
// that wanted something else.
func (p *Proxy) startup(ctx context.Context, nc net.Conn) (*pgproto3.StartupMessage, error) {
	for range 3 {
		var head [4]byte
		if _, err := io.ReadFull(nc, head[:]); err != nil {
			return nil, nil
		}
		n := int(binary.BigEndian.Uint32(head[:])) - 4
		if n < 4 || n > maxStartup {
			return nil, pgerr.New(pgerr.ProtocolViolation, "invalid length of startup packet")
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(nc, body); err != nil {
			return nil, nil
		}
		switch binary.BigEndian.Uint32(body) {
		case sslRequestCode, gssRequestCode:
			// On a loopback address there is nothing to hide.
			if _, err := nc.Write([]byte{'N'}); err != nil {
				return nil, nil
			}
		case cancelCode:
			p.cancel(ctx, append(head[:], body...))
			return nil, nil
		default:
			m := &pgproto3.StartupMessage{}
			if err := m.Decode(body); err != nil {
				return nil, pgerr.New(pgerr.ProtocolViolation, "malformed startup packet")
			}
			if u := m.Parameters["user"]; u != p.opts.User.Name {
				return nil, pgerr.New(pgerr.InvalidAuthorizationSpec, "this wallet signs for %s, not for user \"%s\"", p.opts.User, u).
					WithHint("Connect as %s, or run a wallet with the other user's key.", p.opts.User.Name)
			}
			return m, nil
		}
	}
	return nil, pgerr.New(pgerr.ProtocolViolation, "too many startup packets")
}

// cancel passes a cancel request on.
func (p *Proxy) cancel(ctx context.Context, packet []byte) {
	ctx, done := context.WithTimeout(ctx, startupTimeout)
	defer done()
	c, err := p.dial(ctx)
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write(packet) // there is no answer
	_, _ = io.Copy(io.Discard, c)
}

// dial connects to the node by TLS.
func (p *Proxy) dial(ctx context.Context) (net.Conn, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.opts.Node)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	request := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, sslRequestCode)
	answer := make([]byte, 1)
	if _, err = nc.Write(request); err == nil {
		_, err = io.ReadFull(nc, answer)
	}
	if err == nil && answer[0] != 'S' {
		err = errors.New("the node does not speak TLS")
	}
	if err == nil {
		c := tls.Client(nc, p.opts.TLS)
		if err = c.HandshakeContext(ctx); err == nil {
			return c, nil
		}
	}
	return nil, errors.Join(err, nc.Close())
}

// proxied is one client with its connections to the node.
type proxied struct {
	p            *Proxy
	log          *slog.Logger
	client, node net.Conn
	control      *pgconn.PgConn
	in           *intents
	settings     map[string]string // reported by the node; of one goroutine
}

// connect makes both connections to the node.
func (s *proxied) connect(ctx context.Context, m *pgproto3.StartupMessage) error {
	ctx, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	random := make([]byte, TokenChars/2)
	_, _ = rand.Read(random) // never fails
	token := hex.EncodeToString(random)
	var err error
	if s.node, err = s.p.dial(ctx); err != nil {
		return err
	}
	m.Parameters[SignerSetting] = token
	packet, err := m.Encode(nil)
	if err == nil {
		_, err = s.node.Write(packet)
	}
	if err == nil {
		err = s.connectControl(ctx, token)
	}
	if err != nil {
		return errors.Join(err, s.node.Close())
	}
	return nil
}

func (s *proxied) connectControl(ctx context.Context, token string) error {
	host, port, err := net.SplitHostPort(s.p.opts.Node)
	if err != nil {
		return err
	}
	conf, err := pgconn.ParseConfig(fmt.Sprintf("host='%s' port='%s' user='%s' dbname='%s' sslmode=disable", host, port, s.p.opts.User.Name, sql.Database))
	if err != nil {
		return err
	}
	conf.TLSConfig, conf.Fallbacks = s.p.opts.TLS, nil
	conf.RuntimeParams = map[string]string{"application_name": "tallystick wallet", ControlSetting: token}
	s.control, err = pgconn.ConnectConfig(ctx, conf)
	return err
}

// run passes messages in both directions until one side ends.
func (s *proxied) run(ctx context.Context) {
	defer s.p.track(s.node)()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.control.Close(ctx) // the node notices anyway
	}()
	toNode := make(chan struct{})
	go func() {
		defer close(toNode)
		_ = s.fromClient() // the end of a client is no news
		// What the client said last is answered before the node hears of its end.
		if c, ok := s.node.(*tls.Conn); ok {
			_ = c.CloseWrite()
		}
	}()
	if err := s.fromNode(ctx); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && ctx.Err() == nil {
		s.log.Debug("a connection ended", "error", err)
	}
	_ = s.client.Close()
	_ = s.node.Close()
	<-toNode
}

// fromClient passes on what the client says, and remembers its statements.
func (s *proxied) fromClient() error {
	r, w := bufio.NewReaderSize(s.client, 16<<10), bufio.NewWriterSize(s.node, 16<<10)
	var buf bytes.Buffer
	for {
		if err := readMessage(r, &buf); err != nil {
			return err
		}
		m := buf.Bytes()
		s.in.sent(m[0], m[5:])
		if _, err := w.Write(m); err != nil {
			return err
		}
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		release(&buf)
	}
}

// fromNode passes on what the node says, but for its wishes for signatures.
func (s *proxied) fromNode(ctx context.Context) error {
	r, w := bufio.NewReaderSize(s.node, 16<<10), bufio.NewWriterSize(s.client, 16<<10)
	var buf bytes.Buffer
	for {
		if err := readMessage(r, &buf); err != nil {
			return errors.Join(err, w.Flush())
		}
		m := buf.Bytes()
		switch m[0] {
		case 'N':
			var n pgproto3.NoticeResponse
			if err := n.Decode(m[5:]); err == nil && n.Code == string(SignatureWanted) {
				if err := w.Flush(); err != nil {
					return err
				}
				if err := s.signature(ctx, n.Detail); err != nil {
					return err
				}
				continue
			}
		case 'S':
			var p pgproto3.ParameterStatus
			if err := p.Decode(m[5:]); err == nil {
				s.settings[p.Name] = p.Value
			}
		case 'Z':
			s.in.answered()
		}
		if _, err := w.Write(m); err != nil {
			return err
		}
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		release(&buf)
	}
}

// release lets go of the memory of a large message.
func release(buf *bytes.Buffer) {
	if buf.Cap() > 1<<20 {
		*buf = bytes.Buffer{}
	}
}

// readMessage reads a message with its head. Memory grows with what arrives, not
// with what was announced.
func readMessage(r *bufio.Reader, buf *bytes.Buffer) error {
	buf.Reset()
	if _, err := io.CopyN(buf, r, 5); err != nil {
		return err
	}
	n := int64(binary.BigEndian.Uint32(buf.Bytes()[1:5])) - 4
	if n < 0 || n > maxMessage {
		return fmt.Errorf("wallet: a message of %d bytes", n)
	}
	_, err := io.CopyN(buf, r, n)
	return err
}

// signature answers a wish for a signature.
func (s *proxied) signature(ctx context.Context, detail string) error {
	a := s.decide(ctx, detail)
	if a.Refusal != nil {
		s.log.Warn("not signed", "reason", a.Refusal.Message, "detail", a.Refusal.Detail)
	}
	ctx, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	result := s.control.ExecParams(ctx, "SELECT tallystick_submit($1)", [][]byte{a.Encode()}, []uint32{17}, []int16{1}, nil).Read()
	var refused *pgconn.PgError
	if errors.As(result.Err, &refused) {
		s.log.Debug("the node did not take the signature", "error", result.Err)
		return nil // the statement was canceled, for example
	}
	return result.Err
}

// decide signs what the client has asked for. Nonce and time are the wallet's own.
func (s *proxied) decide(ctx context.Context, detail string) Answer {
	raw, err := hex.DecodeString(detail)
	var tx *block.Tx
	if err == nil {
		tx, err = block.DecodeTx(raw)
	}
	if err != nil {
		return Answer{Refusal: refuse("the node asks for a signature of something that is no transaction").WithDetail("%v", err)}
	}
	var settings [][2]string
	for _, name := range []string{"TimeZone", "DateStyle", "IntervalStyle"} {
		if v, ok := s.settings[name]; ok {
			settings = append(settings, [2]string{name, v})
		}
	}
	if e := s.p.check.check(ctx, tx, s.in.current(), settings); e != nil {
		return Answer{Refusal: e}
	}
	own := &block.Tx{Network: tx.Network, User: tx.User, Call: tx.Call, Snapshot: tx.Snapshot, Flags: tx.Flags, ValidUntil: tx.ValidUntil, Time: s.p.check.clock().UnixMicro()}
	_, _ = rand.Read(own.Nonce[:]) // never fails
	if err := s.p.opts.Sign(own); err != nil {
		return Answer{Refusal: pgerr.New(pgerr.InternalError, "the wallet cannot sign").WithDetail("%v", err)}
	}
	return Answer{Tx: own}
}
