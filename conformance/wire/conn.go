package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Conn is a connection to a server.
type Conn struct {
	net      net.Conn
	frontend *pgproto3.Frontend
	pid      uint32
	secret   []byte

	parameters map[string]string
	status     byte // of the transaction: I, T or E
}

// Connect opens a connection without a password. Network is tcp or unix, the
// parameters are those of the startup packet (user, database, options ...).
func Connect(ctx context.Context, network, address string, parameters map[string]string) (*Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &Conn{net: nc, frontend: pgproto3.NewFrontend(nc, nc), parameters: map[string]string{}}
	deadline, _ := ctx.Deadline()
	if err := errors.Join(nc.SetDeadline(deadline), c.startup(parameters)); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) startup(parameters map[string]string) error {
	c.frontend.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: parameters})
	if err := c.frontend.Flush(); err != nil {
		return err
	}
	for {
		m, err := c.frontend.Receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *pgproto3.AuthenticationOk:
		case *pgproto3.BackendKeyData:
			c.pid, c.secret = m.ProcessID, append([]byte(nil), m.SecretKey...)
		case *pgproto3.ParameterStatus:
			c.parameters[m.Name] = m.Value
		case *pgproto3.NoticeResponse:
		case *pgproto3.ErrorResponse:
			return fmt.Errorf("%s: %s", m.Code, m.Message)
		case *pgproto3.ReadyForQuery:
			c.status = m.TxStatus
			return nil
		default:
			return fmt.Errorf("unexpected %T while connecting", m)
		}
	}
}

// Parameter is the last value that the server reported of a parameter.
func (c *Conn) Parameter(name string) string { return c.parameters[name] }

// Status is I outside of a transaction block, T inside, E in a failed one.
func (c *Conn) Status() byte { return c.status }

// Close ends the session.
func (c *Conn) Close() error {
	c.frontend.Send(&pgproto3.Terminate{})
	_ = c.net.SetDeadline(time.Now().Add(time.Second))
	_ = c.frontend.Flush()
	return c.net.Close()
}

// Query sends a string and reads the answer. When the server asks for data of
// COPY FROM STDIN, data is called for it. An error means that the connection
// is lost; it is os.ErrDeadlineExceeded after the timeout.
func (c *Conn) Query(text string, timeout time.Duration, data func() string) (Answer, error) {
	if err := c.net.SetDeadline(time.Now().Add(timeout)); err != nil {
		return Answer{}, err
	}
	c.frontend.Send(&pgproto3.Query{String: text})
	if err := c.frontend.Flush(); err != nil {
		return Answer{}, err
	}
	r := reader{conn: c, data: data}
	for {
		m, err := c.frontend.Receive()
		if err != nil {
			return r.answer, err
		}
		done, err := r.message(m)
		if done || err != nil {
			return r.answer, err
		}
	}
}

// reader collects an answer.
type reader struct {
	conn   *Conn
	data   func() string
	answer Answer
	result Result
}

func (r *reader) message(m pgproto3.BackendMessage) (done bool, err error) {
	switch m := m.(type) {
	case *pgproto3.RowDescription:
		r.result.Columns = make([]Column, len(m.Fields))
		for i, f := range m.Fields {
			r.result.Columns[i] = Column{string(f.Name), f.DataTypeOID}
		}
	case *pgproto3.DataRow:
		r.result.Rows = append(r.result.Rows, row(m.Values))
	case *pgproto3.CommandComplete:
		r.finish(string(m.CommandTag))
	case *pgproto3.EmptyQueryResponse:
		r.finish("")
	case *pgproto3.CopyInResponse:
		return false, r.copyIn()
	case *pgproto3.CopyOutResponse, *pgproto3.CopyDone:
	case *pgproto3.CopyData:
		r.result.Out = append(r.result.Out, m.Data...)
	case *pgproto3.ErrorResponse:
		e := message((*pgproto3.NoticeResponse)(m))
		r.answer.Err = &e
		if len(r.result.Columns) > 0 {
			r.finish("")
		}
	case *pgproto3.NoticeResponse:
		r.answer.Notices = append(r.answer.Notices, message(m))
	case *pgproto3.ParameterStatus:
		r.conn.parameters[m.Name] = m.Value
	case *pgproto3.NotificationResponse:
	case *pgproto3.ReadyForQuery:
		r.conn.status = m.TxStatus
		return true, nil
	default:
		return false, fmt.Errorf("unexpected %T", m)
	}
	return false, nil
}

func (r *reader) finish(tag string) {
	r.result.Tag = tag
	r.answer.Results = append(r.answer.Results, r.result)
	r.result = Result{}
}

func (r *reader) copyIn() error {
	r.answer.Copies++
	if text := r.data(); text != "" {
		r.conn.frontend.Send(&pgproto3.CopyData{Data: []byte(text)})
	}
	r.conn.frontend.Send(&pgproto3.CopyDone{})
	return r.conn.frontend.Flush()
}

func row(values [][]byte) Row {
	r := make(Row, len(values))
	for i, v := range values {
		r[i] = Value{Text: string(v), Null: v == nil}
	}
	return r
}

func message(m *pgproto3.NoticeResponse) Message {
	return Message{
		Severity: m.Severity, Code: m.Code, Text: m.Message, Detail: m.Detail, Hint: m.Hint,
		Where: m.Where, Position: m.Position,
	}
}
