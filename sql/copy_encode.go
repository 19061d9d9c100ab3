package sql

import (
	"encoding/binary"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// copySignature begins binary data.
const copySignature = "PGCOPY\n\xff\r\n\x00"

// copyEncoder writes the data of COPY TO.
type copyEncoder struct {
	*copyOptions
	columns []plan.Column
	quoted  []bool // FORCE_QUOTE
	scratch []byte
}

// begin writes what stands before the first row.
func (e *copyEncoder) begin(dst []byte) []byte {
	if e.binary {
		dst = append(dst, copySignature...)
		return append(dst, 0, 0, 0, 0, 0, 0, 0, 0) // flags, length of the extension
	}
	if !e.header {
		return dst
	}
	for i, c := range e.columns {
		if i > 0 {
			dst = append(dst, e.delimiter)
		}
		if e.csv {
			dst = e.csvField(dst, []byte(c.Name), false, len(e.columns) == 1)
		} else {
			dst = e.textField(dst, []byte(c.Name))
		}
	}
	return append(dst, '\n')
}

// end writes what stands behind the last row.
func (e *copyEncoder) end(dst []byte) []byte {
	if e.binary {
		return append(dst, 0xff, 0xff)
	}
	return dst
}

func (e *copyEncoder) row(dst []byte, row []datum.Datum, f *datum.Format) []byte {
	if e.binary {
		return e.binaryRow(dst, row)
	}
	for i, d := range row {
		if i > 0 {
			dst = append(dst, e.delimiter)
		}
		if d.IsNull() {
			dst = append(dst, e.null...)
			continue
		}
		e.scratch = e.columns[i].Type.Append(e.scratch[:0], d, f)
		if e.csv {
			dst = e.csvField(dst, e.scratch, e.forceQuoteAll || e.quoted[i], len(row) == 1)
		} else {
			dst = e.textField(dst, e.scratch)
		}
	}
	return append(dst, '\n')
}

func (e *copyEncoder) binaryRow(dst []byte, row []datum.Datum) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(row)))
	for i, d := range row {
		if d.IsNull() {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		dst = e.columns[i].Type.AppendBinary(dst, d)
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst
}

// textEscapes are the control characters that the text format names.
var textEscapes = [256]byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v', '\\': '\\'}

// textField writes a value of the text format (CopyAttributeOutText).
func (e *copyEncoder) textField(dst, value []byte) []byte {
	for _, c := range value {
		switch {
		case textEscapes[c] != 0:
			dst = append(dst, '\\', textEscapes[c])
		case c == e.delimiter:
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// csvField writes a value of the CSV format (CopyAttributeOutCSV).
func (e *copyEncoder) csvField(dst, value []byte, force, single bool) []byte {
	if !force && !e.needsQuotes(value, single) {
		return append(dst, value...)
	}
	dst = append(dst, e.quote)
	for _, c := range value {
		if c == e.quote || c == e.escape {
			dst = append(dst, e.escape)
		}
		dst = append(dst, c)
	}
	return append(dst, e.quote)
}

func (e *copyEncoder) needsQuotes(value []byte, single bool) bool {
	if string(value) == e.null || single && string(value) == `\.` {
		return true
	}
	for _, c := range value {
		if c == '\n' || c == '\r' || c == e.delimiter || c == e.quote {
			return true
		}
	}
	return false
}
