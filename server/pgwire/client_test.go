package pgwire

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// client is a frontend that speaks single messages.
type client struct {
	nc   net.Conn
	fe   *pgproto3.Frontend
	key  pgproto3.BackendKeyData
	seen []string // startup messages, parameters by name only
}

const clientTimeout = 20 * time.Second

// dial opens a connection and sends the startup packet.
func dial(addr string, version uint32, params map[string]string) (*client, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	_ = nc.SetDeadline(time.Now().Add(clientTimeout))
	c := &client{nc: nc, fe: pgproto3.NewFrontend(nc, nc)}
	c.fe.Send(&pgproto3.StartupMessage{ProtocolVersion: version, Parameters: params})
	if err := c.fe.Flush(); err != nil {
		return nil, err
	}
	return c, nil
}

// login reads up to the first ReadyForQuery, an error or the end.
func (c *client) login() error {
	var params []string
	for {
		m, err := c.fe.Receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *pgproto3.ParameterStatus:
			params = append(params, m.Name)
			continue
		case *pgproto3.BackendKeyData:
			c.key = *m
			sort.Strings(params)
			c.seen = append(c.seen, "ParameterStatus "+strings.Join(params, " "), "BackendKeyData")
			continue
		}
		c.seen = append(c.seen, show(m, nil))
		switch m.(type) {
		case *pgproto3.ErrorResponse, *pgproto3.ReadyForQuery:
			return nil
		}
	}
}

func defaults() map[string]string {
	return map[string]string{"user": testUser, "database": testDatabase}
}

// connect opens a session.
func connect(t testing.TB, addr string) *client {
	t.Helper()
	c, err := dial(addr, pgproto3.ProtocolVersion30, defaults())
	if err == nil {
		err = c.login()
	}
	if err != nil {
		t.Fatal(err)
	}
	if last := c.seen[len(c.seen)-1]; last != "ReadyForQuery I" {
		t.Fatalf("startup ended with %s", last)
	}
	t.Cleanup(func() { _ = c.nc.Close() })
	return c
}

// collect receives until n ReadyForQuery have come, or the connection ended.
func (c *client) collect(n int) []string {
	var out []string
	var formats []int16
	for n > 0 {
		m, err := c.fe.Receive()
		if err != nil {
			return append(out, showEnd(err))
		}
		out = append(out, show(m, formats))
		switch m := m.(type) {
		case *pgproto3.RowDescription:
			formats = formats[:0]
			for _, f := range m.Fields {
				formats = append(formats, f.Format)
			}
		case *pgproto3.ReadyForQuery:
			n--
		}
	}
	return out
}

func showEnd(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "timeout"
	}
	return "closed"
}

// query runs a script by the simple protocol.
func (c *client) query(text string) []string {
	c.fe.Send(&pgproto3.Query{String: text})
	if err := c.fe.Flush(); err != nil {
		return []string{"closed"}
	}
	return c.collect(1)
}

// parseMessage reads one line of a script: the name of a message and its
// fields, each a word or a quoted Go string.
func parseMessage(line string) (raw []byte, ends bool, err error) {
	w, err := words(line)
	if err != nil {
		return nil, false, err
	}
	name, w := w[0], w[1:]
	arg := func(i int) string {
		if i < len(w) {
			return w[i]
		}
		return ""
	}
	var m pgproto3.FrontendMessage
	switch name {
	case "Query":
		m, ends = &pgproto3.Query{String: arg(0)}, true
	case "Sync":
		m, ends = &pgproto3.Sync{}, true
	case "FunctionCall":
		m, ends = &pgproto3.FunctionCall{Function: 1}, true
	case "Flush":
		m = &pgproto3.Flush{}
	case "Terminate":
		m = &pgproto3.Terminate{}
	case "CopyData":
		m = &pgproto3.CopyData{Data: []byte(arg(0))}
	case "CopyDone":
		m = &pgproto3.CopyDone{}
	case "CopyFail":
		m = &pgproto3.CopyFail{Message: arg(0)}
	case "Parse":
		p := &pgproto3.Parse{Name: arg(0), Query: arg(1)}
		for _, s := range w[min(2, len(w)):] {
			oid, err := strconv.ParseUint(s, 10, 32)
			if err != nil {
				return nil, false, err
			}
			p.ParameterOIDs = append(p.ParameterOIDs, uint32(oid))
		}
		m = p
	case "Bind":
		if m, err = parseBind(w); err != nil {
			return nil, false, err
		}
	case "Describe":
		m = &pgproto3.Describe{ObjectType: arg(0)[0], Name: arg(1)}
	case "Close":
		m = &pgproto3.Close{ObjectType: arg(0)[0], Name: arg(1)}
	case "Execute":
		n, _ := strconv.ParseUint(arg(1), 10, 32)
		m = &pgproto3.Execute{Portal: arg(0), MaxRows: uint32(n)}
	case "Raw": // type, then the body in hexadecimal: the length is filled in
		body, err := hex.DecodeString(arg(1))
		if err != nil {
			return nil, false, err
		}
		return append([]byte{arg(0)[0], 0, 0, 0, byte(len(body) + 4)}, body...), false, nil
	case "Bytes": // as they are
		raw, err = hex.DecodeString(strings.Join(w, ""))
		return raw, false, err
	default:
		return nil, false, fmt.Errorf("unknown message %s", name)
	}
	raw, err = m.Encode(nil)
	return raw, ends, err
}

// parseBind: portal, statement, then parameters (text "x", binary 0x.., null)
// with formats=... and results=... as comma-separated codes.
func parseBind(w []string) (*pgproto3.Bind, error) {
	b := &pgproto3.Bind{DestinationPortal: w[0], PreparedStatement: w[1]}
	codes := func(s string) (out []int16, err error) {
		for _, c := range strings.Split(s, ",") {
			n, err := strconv.ParseInt(c, 10, 16)
			if err != nil {
				return nil, err
			}
			out = append(out, int16(n))
		}
		return out, nil
	}
	for _, s := range w[2:] {
		var err error
		if list, ok := strings.CutPrefix(s, "formats="); ok {
			b.ParameterFormatCodes, err = codes(list)
		} else if list, ok := strings.CutPrefix(s, "results="); ok {
			b.ResultFormatCodes, err = codes(list)
		} else if s == "null" {
			b.Parameters = append(b.Parameters, nil)
		} else if digits, ok := strings.CutPrefix(s, "0x"); ok {
			var v []byte
			v, err = hex.DecodeString(digits)
			b.Parameters = append(b.Parameters, v)
		} else {
			b.Parameters = append(b.Parameters, []byte(s))
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

func words(line string) ([]string, error) {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if line[0] == '"' || line[0] == '`' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
			s, _ := strconv.Unquote(quoted)
			out, line = append(out, s), line[len(quoted):]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		out, line = append(out, word), rest
	}
	return out, nil
}

// show writes a message of the server on one line. Object identifiers of
// tables and the source position of an error are left out: they differ between
// servers that behave alike.
func show(m pgproto3.BackendMessage, formats []int16) string {
	switch m := m.(type) {
	case *pgproto3.ReadyForQuery:
		return "ReadyForQuery " + string(m.TxStatus)
	case *pgproto3.CommandComplete:
		return "CommandComplete " + string(m.CommandTag)
	case *pgproto3.ParameterStatus:
		return fmt.Sprintf("ParameterStatus %s=%q", m.Name, m.Value)
	case *pgproto3.ParameterDescription:
		return strings.TrimSpace("ParameterDescription " + strings.Trim(fmt.Sprint(m.ParameterOIDs), "[]"))
	case *pgproto3.RowDescription:
		return showColumns(m)
	case *pgproto3.DataRow:
		return showRow(m, formats)
	case *pgproto3.ErrorResponse:
		return "ErrorResponse" + showReport(*m)
	case *pgproto3.NoticeResponse:
		return "NoticeResponse" + showReport(pgproto3.ErrorResponse(*m))
	case *pgproto3.CopyData:
		return fmt.Sprintf("CopyData %q", m.Data)
	case *pgproto3.CopyOutResponse:
		return fmt.Sprintf("CopyOutResponse %d %v", m.OverallFormat, m.ColumnFormatCodes)
	case *pgproto3.CopyInResponse:
		return fmt.Sprintf("CopyInResponse %d %v", m.OverallFormat, m.ColumnFormatCodes)
	case *pgproto3.NotificationResponse:
		return fmt.Sprintf("NotificationResponse %q %q", m.Channel, m.Payload)
	case *pgproto3.NegotiateProtocolVersion:
		return fmt.Sprintf("NegotiateProtocolVersion %d.%d %q", m.NewestMinorProtocol>>16, m.NewestMinorProtocol&0xffff, m.UnrecognizedOptions)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3.")
}

func showColumns(m *pgproto3.RowDescription) string {
	var b strings.Builder
	b.WriteString("RowDescription")
	for _, f := range m.Fields {
		fmt.Fprintf(&b, " %q type=%d size=%d mod=%d", f.Name, f.DataTypeOID, f.DataTypeSize, f.TypeModifier)
		if f.TableOID != 0 {
			fmt.Fprintf(&b, " attr=%d", f.TableAttributeNumber)
		}
		if f.Format != 0 {
			fmt.Fprintf(&b, " format=%d", f.Format)
		}
	}
	return b.String()
}

func showRow(m *pgproto3.DataRow, formats []int16) string {
	var b strings.Builder
	b.WriteString("DataRow")
	for i, v := range m.Values {
		switch {
		case v == nil:
			b.WriteString(" null")
		case formatOf(formats, i) == 1:
			fmt.Fprintf(&b, " 0x%x", v)
		default:
			fmt.Fprintf(&b, " %q", v)
		}
	}
	return b.String()
}

func showReport(e pgproto3.ErrorResponse) string {
	var b strings.Builder
	fmt.Fprintf(&b, " %s %s %q", e.SeverityUnlocalized, e.Code, e.Message)
	for _, f := range []struct{ name, value string }{
		{"detail", e.Detail}, {"hint", e.Hint}, {"where", e.Where}, {"query", e.InternalQuery}, {"schema", e.SchemaName},
		{"table", e.TableName}, {"column", e.ColumnName}, {"type", e.DataTypeName}, {"constraint", e.ConstraintName},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, " %s=%q", f.name, f.value)
		}
	}
	if e.Position != 0 {
		fmt.Fprintf(&b, " position=%d", e.Position)
	}
	if e.InternalPosition != 0 {
		fmt.Fprintf(&b, " internal=%d", e.InternalPosition)
	}
	return b.String()
}

// drainAll reads whatever comes until the connection ends.
func drainAll(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) }
