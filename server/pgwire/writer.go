package pgwire

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

const (
	// writeBuffer is how many bytes of answers are collected before they are
	// sent without being asked for.
	writeBuffer = 32 << 10
	// maxDataRow is PostgreSQL's MaxAllocSize, which bounds a row on the wire.
	maxDataRow = 1<<30 - 1
)

// writer collects the answers of a connection. After a failed write it swallows
// everything; err tells.
type writer struct {
	w     io.Writer
	buf   []byte
	err   error
	bytes int64 // bytes sent
}

// send adds a message that is not on a hot path.
func (w *writer) send(m pgproto3.BackendMessage) {
	buf, err := m.Encode(w.buf)
	if err != nil {
		w.fail(err)
		return
	}
	w.buf = buf
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// flush sends what was collected.
func (w *writer) flush() error {
	if len(w.buf) > 0 && w.err == nil {
		n, err := w.w.Write(w.buf)
		w.bytes += int64(n)
		if err != nil {
			w.fail(err)
		}
	}
	if cap(w.buf) > 4*writeBuffer {
		w.buf = nil
	}
	w.buf = w.buf[:0]
	return w.err
}

// begin adds the head of a message and returns where it stands; end fills in
// the length.
func (w *writer) begin(typ byte) int {
	w.buf = append(w.buf, typ, 0, 0, 0, 0)
	return len(w.buf) - 4
}

func (w *writer) end(at int) {
	binary.BigEndian.PutUint32(w.buf[at:], uint32(len(w.buf)-at))
}

// empty adds a message without a body: ParseComplete, NoData and so on.
func (w *writer) empty(typ byte) { w.buf = append(w.buf, typ, 0, 0, 0, 4) }

// The types of messages without a body.
const (
	parseComplete      = '1'
	bindComplete       = '2'
	closeComplete      = '3'
	emptyQueryResponse = 'I'
	noData             = 'n'
	portalSuspended    = 's'
)

func (w *writer) commandComplete(tag string) {
	at := w.begin('C')
	w.buf = append(w.buf, tag...)
	w.buf = append(w.buf, 0)
	w.end(at)
}

// selectComplete is commandComplete("SELECT n").
func (w *writer) selectComplete(n int64) {
	at := w.begin('C')
	w.buf = append(w.buf, "SELECT "...)
	w.buf = strconv.AppendInt(w.buf, n, 10)
	w.buf = append(w.buf, 0)
	w.end(at)
}

func (w *writer) readyForQuery(status byte) {
	w.buf = append(w.buf, 'Z', 0, 0, 0, 5, status)
}

func (w *writer) parameterDescription(types []datum.Type) {
	at := w.begin('t')
	w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(len(types)))
	for _, t := range types {
		w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(t.OID))
	}
	w.end(at)
}

// rowDescription describes cols, with the formats that codes ask for (see
// formatOf). A domain is described as its base type (SendRowDescriptionMessage).
func (w *writer) rowDescription(cols []plan.Column, codes []int16) {
	at := w.begin('T')
	w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(len(cols)))
	for i := range cols {
		c := &cols[i]
		t := c.Type.Root()
		w.buf = append(w.buf, c.Name...)
		w.buf = append(w.buf, 0)
		w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(c.Table))
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(c.Attr))
		w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(t.OID))
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(t.Len))
		w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(t.Mod))
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(formatOf(codes, i)))
	}
	w.end(at)
}

// dataRow adds a row and sends what was collected once that is a bufferful.
func (w *writer) dataRow(cols []plan.Column, codes []int16, f *datum.Format, row []datum.Datum) error {
	start := len(w.buf)
	w.buf = appendDataRow(w.buf, cols, codes, f, row)
	if n := len(w.buf) - start; n > maxDataRow {
		w.buf = w.buf[:start]
		return pgerr.New(pgerr.ProgramLimitExceeded, "row of %d bytes is too large to be sent", n)
	}
	if len(w.buf) >= writeBuffer {
		return w.flush()
	}
	return nil
}

// appendDataRow appends a DataRow message: no allocation beyond the growth of
// dst.
func appendDataRow(dst []byte, cols []plan.Column, codes []int16, f *datum.Format, row []datum.Datum) []byte {
	start := len(dst) + 1
	dst = append(dst, 'D', 0, 0, 0, 0, byte(len(cols)>>8), byte(len(cols)))
	for i := range cols {
		d := row[i]
		if d.IsNull() {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		if formatOf(codes, i) == pgproto3.TextFormat {
			dst = cols[i].Type.Append(dst, d, f)
		} else {
			dst = cols[i].Type.AppendBinary(dst, d)
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// formatOf returns the format of column or parameter i: no code means text for
// all, one code is for all, otherwise there is one for each.
func formatOf(codes []int16, i int) int16 {
	switch len(codes) {
	case 0:
		return pgproto3.TextFormat
	case 1:
		return codes[0]
	}
	return codes[i]
}
