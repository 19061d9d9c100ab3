package pgwire

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// lostError ends a connection that broke off, or made no sense any more, while
// a statement read from it.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// copy exchanges the data of a COPY that was started.
func (c *conn) copy(ctx context.Context, pt *sql.Portal) error {
	cp := pt.Copy()
	if !cp.In {
		c.copyResponse('H', cp)
		return c.copyOut(ctx, pt)
	}
	c.copyResponse('G', cp)
	if err := c.out.flush(); err != nil {
		return err
	}
	return pt.CopyIn(ctx, func() ([]byte, error) { return c.copyData(ctx) })
}

// copyResponse is CopyOutResponse (H) or CopyInResponse (G): the overall format
// and that of each column, which are the same.
func (c *conn) copyResponse(typ byte, cp *sql.Copy) {
	at := c.out.begin(typ)
	format := byte(pgproto3.TextFormat)
	if cp.Binary {
		format = pgproto3.BinaryFormat
	}
	c.out.buf = append(c.out.buf, format, byte(cp.Columns>>8), byte(cp.Columns))
	for range cp.Columns {
		c.out.buf = append(c.out.buf, 0, format)
	}
	c.out.end(at)
}

// copyDone marks the end of the data.
const copyDone = 'c'

func (c *conn) copyOut(ctx context.Context, pt *sql.Portal) error {
	for n := 1; ; n++ {
		row, err := pt.Next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			c.out.empty(copyDone)
			return nil
		}
		at := c.out.begin('d')
		c.out.buf = append(c.out.buf, row[0].Bytes()...)
		c.out.end(at)
		if len(c.out.buf) >= writeBuffer {
			if err := c.out.flush(); err != nil {
				return err
			}
		}
		if n%cancelEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// copyData returns the next piece of data that the client sends, io.EOF after
// CopyDone (CopyGetData). Flush and Sync in between are ignored for the sake of
// clients that send them by habit.
func (c *conn) copyData(ctx context.Context) ([]byte, error) {
	for {
		typ, body, err := c.in.next()
		if err != nil {
			if e, ok := pgerr.From(err); ok {
				return nil, lostError{fatalError{e}}
			}
			return nil, lostError{err}
		}
		c.messages++
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch typ {
		case 'd':
			return body, nil
		case 'c':
			return nil, io.EOF
		case 'f':
			return nil, copyFailed(body)
		case 'H', 'S':
		default:
			return nil, pgerr.New(pgerr.ProtocolViolation, "unexpected message type 0x%02X during COPY from stdin", typ)
		}
	}
}

// copyFailed is the error of a client that gives up.
func copyFailed(body []byte) error {
	var m pgproto3.CopyFail
	if err := m.Decode(body); err != nil {
		return errMessageFormat()
	}
	if err := datum.CheckText(m.Message); err != nil {
		return err
	}
	return pgerr.New(pgerr.QueryCanceled, "COPY from stdin failed: %s", m.Message)
}
