package pgwire

import (
	"bytes"
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Codes in the place of a protocol version (src/include/libpq/pqcomm.h).
const (
	cancelRequestCode = 80877102
	sslRequestCode    = 80877103
	gssRequestCode    = 80877104
)

const (
	protocolMajor  = 3
	protocolNewest = pgproto3.ProtocolVersion32
	// keyBytes is the length of the cancellation key in protocol 3.2;
	// longKeyMinor is the minor version since which keys may be longer than
	// four bytes.
	keyBytes     = 32
	longKeyMinor = 2
)

// errDone ends a connection that needs no answer: a cancel request was served,
// or the client is gone.
var errDone = errors.New("pgwire: connection is done")

// startup brings a connection to the point where it has a session: encryption,
// parameters, authentication. Errors are *pgerr.Error for the client, or mean
// that there is nobody to answer to.
func (c *conn) startup() (err error) {
	defer c.contain(&err)
	params, err := c.negotiate()
	if err != nil {
		return err
	}
	if !c.srv.admit(c) {
		return pgerr.New(pgerr.TooManyConnections, "sorry, too many clients already")
	}
	if auth := c.srv.cfg.Authenticate; auth != nil {
		if err := auth(c.srv.base, params); err != nil {
			return err
		}
	}
	if c.srv.cfg.SCRAM != nil {
		v, err := c.srv.cfg.SCRAM(params)
		if err != nil {
			return err
		}
		if v != nil {
			if err := c.scram(params.User, v); err != nil {
				return err
			}
		}
	}
	c.out.send(&pgproto3.AuthenticationOk{})
	return c.openSession(params)
}

// negotiate reads startup packets until one asks for a session.
func (c *conn) negotiate() (StartupParams, error) {
	encrypted, refusedSSL, refusedGSS := false, false, false
	for {
		body, err := c.in.startup()
		if err != nil {
			return StartupParams{}, err
		}
		switch code := binary.BigEndian.Uint32(body); {
		case code == cancelRequestCode:
			c.cancelRequest(body)
			return StartupParams{}, errDone
		case code == sslRequestCode && !encrypted && !refusedSSL:
			if encrypted, err = c.sslRequest(); err != nil {
				return StartupParams{}, err
			}
			refusedSSL = !encrypted
		case code == gssRequestCode && !encrypted && !refusedGSS:
			if err := c.answer('N', "GSSAPI encryption request"); err != nil {
				return StartupParams{}, err
			}
			refusedGSS = true
		case code>>16 == protocolMajor:
			return c.startupParams(code, body[4:])
		default:
			return StartupParams{}, pgerr.New(pgerr.FeatureNotSupported,
				"unsupported frontend protocol %d.%d: server supports %d.0 to %d.%d",
				code>>16, code&0xffff, protocolMajor, protocolMajor, protocolNewest&0xffff)
		}
	}
}

// answer replies one byte to a request for encryption. Bytes that came in
// before the answer were sent by somebody who does not wait for it: in front of
// an encrypted stream they would be an injection.
func (c *conn) answer(b byte, request string) error {
	if c.in.buffered() {
		return pgerr.New(pgerr.ProtocolViolation, "received unencrypted data after %s", request).
			WithDetail("This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.")
	}
	c.out.buf = append(c.out.buf, b)
	return c.out.flush()
}

func (c *conn) sslRequest() (encrypted bool, err error) {
	if c.srv.cfg.TLS == nil {
		return false, c.answer('N', "SSL request")
	}
	if err := c.answer('S', "SSL request"); err != nil {
		return false, err
	}
	t := tls.Server(c.nc, c.srv.cfg.TLS)
	if err := t.HandshakeContext(c.srv.base); err != nil {
		c.log.Info("TLS handshake failed", "error", err)
		return false, errDone
	}
	state := t.ConnectionState()
	c.tls = &state
	c.setStream(t)
	return true, nil
}

// cancelRequest serves a connection that only wants to cancel what another one
// is doing. There is never an answer, so that keys cannot be guessed by it.
func (c *conn) cancelRequest(body []byte) {
	var m pgproto3.CancelRequest
	if err := m.Decode(body); err != nil {
		return
	}
	if other := c.srv.byPID(int32(m.ProcessID)); other != nil && subtle.ConstantTimeCompare(other.key, m.SecretKey) == 1 {
		c.srv.metrics.cancels.Add(1)
		other.interrupt(errUserCancel())
	}
}

// startupParams reads the parameters of a startup packet (ProcessStartupPacket).
func (c *conn) startupParams(version uint32, b []byte) (StartupParams, error) {
	p := StartupParams{ClientAddr: c.nc.RemoteAddr().String(), PID: c.pid, TLS: c.tls}
	var unknown []string
	for len(b) > 0 && b[0] != 0 {
		name, rest, ok := cstring(b)
		value, rest, ok2 := cstring(rest)
		if !ok || !ok2 {
			break
		}
		b = rest
		switch {
		case name == "user":
			p.User = value
		case name == "database":
			p.Database = value
		case name == "application_name":
			p.ApplicationName = value
		case name == "options":
			settings, err := parseOptions(value)
			if err != nil {
				return p, err
			}
			p.Settings = append(p.Settings, settings...)
		case name == "replication":
			if !isFalse(value) {
				return p, pgerr.NotBuilt("replication connections are not supported")
			}
		case strings.HasPrefix(name, "_pq_."):
			unknown = append(unknown, name)
		default:
			p.Settings = append(p.Settings, [2]string{name, value})
		}
	}
	if len(b) != 1 || b[0] != 0 {
		return p, pgerr.New(pgerr.ProtocolViolation, "invalid startup packet layout: expected terminator as last byte")
	}
	if p.User == "" {
		return p, pgerr.New(pgerr.InvalidAuthorizationSpec, "no PostgreSQL user name specified in startup packet")
	}
	if p.Database == "" {
		p.Database = p.User
	}
	c.minor = int(min(version, protocolNewest) & 0xffff)
	if version > protocolNewest || len(unknown) > 0 {
		c.out.send(&pgproto3.NegotiateProtocolVersion{
			NewestMinorProtocol: min(version, protocolNewest), UnrecognizedOptions: unknown})
	}
	return p, checkParams(p)
}

func checkParams(p StartupParams) error {
	for _, s := range append([][2]string{{p.User, p.Database}, {p.ApplicationName}}, p.Settings...) {
		for _, text := range s {
			if err := datum.CheckText(text); err != nil {
				return err
			}
		}
	}
	return nil
}

func cstring(b []byte) (s string, rest []byte, ok bool) {
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return "", b, false
	}
	return string(b[:i]), b[i+1:], true
}

func isFalse(s string) bool {
	switch strings.ToLower(s) {
	case "", "0", "off", "no", "false", "f", "n":
		return true
	}
	return false
}

// parseOptions reads the value of "options": -c name=value and --name=value,
// separated by white space that a backslash makes ordinary (pg_split_opts).
func parseOptions(s string) ([][2]string, error) {
	var out [][2]string
	words := splitOptions(s)
	for i := 0; i < len(words); i++ {
		word, arg := words[i], ""
		switch {
		case word == "-c" && i+1 < len(words):
			i++
			arg = words[i]
		case strings.HasPrefix(word, "--"):
			arg = word[2:]
		case strings.HasPrefix(word, "-c"):
			arg = word[2:]
		}
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, pgerr.New(pgerr.SyntaxError, "invalid command-line argument for server process: %s", word)
		}
		out = append(out, [2]string{strings.ReplaceAll(name, "-", "_"), value})
	}
	return out, nil
}

func splitOptions(s string) []string {
	var words []string
	var word strings.Builder
	started, escaped := false, false
	for _, r := range s {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\':
			started, escaped = true, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if started {
				words = append(words, word.String())
				word.Reset()
			}
			started = false
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words
}

// openSession makes the session, applies the client's settings and reports
// what a client wants to know before its first statement.
func (c *conn) openSession(p StartupParams) error {
	p.Notice, p.Parameter, p.Flush, p.Wake = c.notice, c.parameter, c.out.flush, c.notified
	s, err := c.srv.cfg.NewSession(p)
	if err != nil {
		return err
	}
	c.session = s
	for _, setting := range p.Settings {
		if err := s.SetStartup(setting[0], setting[1]); err != nil {
			return err
		}
	}
	clear(c.changed)
	c.changes = c.changes[:0]
	for _, setting := range s.ReportedSettings() {
		c.reported[setting[0]] = setting[1]
		c.out.send(&pgproto3.ParameterStatus{Name: setting[0], Value: setting[1]})
	}
	if c.minor < longKeyMinor {
		c.key = c.key[:4]
	}
	c.srv.publish(c)
	c.out.send(&pgproto3.BackendKeyData{ProcessID: uint32(c.pid), SecretKey: c.key})
	// From here on the client has a session and is told why it ends.
	c.mu.Lock()
	c.started, c.busy = true, true
	c.mu.Unlock()
	c.ready()
	return c.out.err
}

// gone reports whether err means that the client left, never spoke the protocol
// or was cut off: nothing to answer, nothing to worry about.
func gone(err error) bool {
	var network *net.OpError
	return errors.Is(err, errDone) || errors.Is(err, errBadStartup) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network)
}
