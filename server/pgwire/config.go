package pgwire

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Config tells a [Server] how to make sessions and where its bounds are.
type Config struct {
	// NewSession makes the session of a connection that was let in. A
	// *pgerr.Error goes to the client as a FATAL error; any other error is
	// logged and reported as XX000. Required.
	NewSession func(p StartupParams) (*sql.Session, error)

	// Authenticate decides whether a client may come in: 28000 for an unknown
	// role, 3D000 for an unknown database (see [UnknownRole] and
	// [UnknownDatabase]). Nil lets everybody in who comes as far as NewSession.
	Authenticate func(ctx context.Context, p StartupParams) error

	// SCRAM, if not nil, returns what a client who was let in by Authenticate has
	// to prove to know, by SCRAM-SHA-256; nil asks for no password.
	SCRAM func(p StartupParams) (*SCRAMVerifier, error)

	// TLS, if not nil, is offered to clients that ask for SSL. Without it they
	// are told to go on in the clear, or to go away if that is what they want.
	TLS *tls.Config

	// MaxConnections bounds the sessions; one more is refused with 53300.
	// Default 100.
	MaxConnections int

	// StartupTimeout bounds the time from accepting a connection to its first
	// ReadyForQuery, as authentication_timeout does. Default 1 minute.
	StartupTimeout time.Duration

	// MaxMessage bounds the body of a Query, Parse, Bind, FunctionCall or
	// CopyData message in bytes. Default 16 MiB. All others are bounded by
	// PostgreSQL's own 10,000 bytes.
	MaxMessage int

	// Logger receives refused connections, panics and internal errors. Default
	// slog.Default().
	Logger *slog.Logger
}

// The defaults of [Config].
const (
	DefaultMaxConnections = 100
	DefaultStartupTimeout = time.Minute
	DefaultMaxMessage     = 16 << 20
)

// EnsureDefaults fills in what was left zero.
func (c *Config) EnsureDefaults() {
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.StartupTimeout == 0 {
		c.StartupTimeout = DefaultStartupTimeout
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}

// Validate reports what makes a configuration unusable.
func (c *Config) Validate() error {
	switch {
	case c.NewSession == nil:
		return errors.New("pgwire: Config.NewSession is required")
	case c.MaxConnections < 0:
		return errors.New("pgwire: Config.MaxConnections is negative")
	case c.StartupTimeout < 0:
		return errors.New("pgwire: Config.StartupTimeout is negative")
	case c.MaxMessage < smallMessage || c.MaxMessage > maxDataRow:
		return errors.New("pgwire: Config.MaxMessage must be between 10,000 bytes and 1 GiB")
	}
	return nil
}

// StartupParams is what a client said about itself when it connected, and the
// way back to it.
type StartupParams struct {
	User, Database  string
	ApplicationName string
	// Settings are the other run-time parameters (name, value) in the order in
	// which the client sent them, those inside "options" included. The server
	// gives them to the new session's SetStartup; NewSession need not.
	Settings [][2]string
	// ClientAddr is the remote address, host and port.
	ClientAddr string
	// PID identifies the connection to CancelRequest and pg_backend_pid().
	PID int32
	// TLS is the state of an encrypted connection, nil otherwise.
	TLS *tls.ConnectionState

	// Notice sends a NoticeResponse, and Parameter notes a changed setting for
	// ParameterStatus; they belong into sql.SessionOptions. Both may be called
	// only while a method of the session is running, on its goroutine. They are
	// nil in Authenticate.
	Notice    func(severity string, e *pgerr.Error)
	Parameter func(name, value string)
	// Flush sends what was collected, notices for example, at once; like Notice.
	Flush func() error
	// Wake makes the connection look for notifications; it may be called at any
	// time by any goroutine. It belongs into sql.SessionOptions too.
	Wake func()
}

// UnknownRole is PostgreSQL's answer to a user that does not exist.
func UnknownRole(user string) *pgerr.Error {
	return pgerr.New(pgerr.InvalidAuthorizationSpec, "role \"%s\" does not exist", user)
}

// UnknownDatabase is PostgreSQL's answer to a database that does not exist.
func UnknownDatabase(name string) *pgerr.Error {
	return pgerr.New(pgerr.InvalidCatalogName, "database \"%s\" does not exist", name)
}
