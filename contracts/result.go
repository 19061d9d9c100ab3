package contracts

import (
	"encoding/binary"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// MaxResultBytes bounds the encoded result of a transaction. It is part of the
// protocol: a call that returns more fails with 54000.
const MaxResultBytes = 1 << 20

// The rows of a result are encoded as
//
//	uvarint  number of columns
//	uvarint  number of rows
//	(0 for NULL, else uvarint length + 1 and the bytes)*   row by row
//
// with the bytes of PostgreSQL's binary format. A result without columns is no
// bytes at all. There is one encoding of given rows: their hash stands in the
// state hash of the block.

// EncodeRows returns the canonical form of rows: 54000 if it is too long.
func EncodeRows(columns []plan.Column, rows [][]datum.Datum) ([]byte, error) {
	e := rowEncoder{columns: columns}
	for _, r := range rows {
		if err := e.row(r); err != nil {
			return nil, err
		}
	}
	return e.finish(), nil
}

// rowEncoder encodes rows as they come.
type rowEncoder struct {
	columns []plan.Column
	rows    uint64
	values  []byte
	scratch []byte
}

func (e *rowEncoder) row(row []datum.Datum) error {
	if len(e.columns) == 0 {
		return nil
	}
	if len(row) != len(e.columns) {
		return pgerr.NotBuilt("a call that returns rows of a composite type is not supported")
	}
	e.rows++
	for i, d := range row {
		if d.IsNull() {
			e.values = append(e.values, 0)
			continue
		}
		t := &e.columns[i].Type
		if t.Kind == datum.Pseudo && t.Desc != datum.Void {
			return pgerr.NotBuilt("a call that returns type %s is not supported", datum.FormatType(*t))
		}
		e.scratch = t.AppendBinary(e.scratch[:0], d)
		e.values = binary.AppendUvarint(e.values, uint64(len(e.scratch))+1)
		e.values = append(e.values, e.scratch...)
	}
	if len(e.values) > MaxResultBytes {
		return pgerr.New(pgerr.ProgramLimitExceeded, "result of the transaction exceeds %d bytes", MaxResultBytes)
	}
	return nil
}

func (e *rowEncoder) finish() []byte {
	if len(e.columns) == 0 {
		return nil
	}
	b := make([]byte, 0, len(e.values)+2*binary.MaxVarintLen32)
	b = binary.AppendUvarint(b, uint64(len(e.columns)))
	b = binary.AppendUvarint(b, e.rows)
	return append(b, e.values...)
}

// DecodeRows is the inverse of [EncodeRows]: 22P03 for bytes that it cannot
// have written for these columns. The rows share memory with b.
func DecodeRows(columns []plan.Column, b []byte) ([][]datum.Datum, error) {
	if len(columns) == 0 {
		if len(b) != 0 {
			return nil, malformed("it has no columns and %d bytes", len(b))
		}
		return nil, nil
	}
	if n, rest, ok := uvarint(b); !ok || n != uint64(len(columns)) {
		return nil, malformed("it does not have %d columns", len(columns))
	} else {
		b = rest
	}
	count, b, ok := uvarint(b)
	// Every value takes a byte at least.
	if !ok || count > uint64(len(b)/len(columns)) {
		return nil, malformed("the number of rows is wrong")
	}
	rows := make([][]datum.Datum, count)
	values := make([]datum.Datum, int(count)*len(columns))
	for i := range rows {
		rows[i], values = values[:len(columns):len(columns)], values[len(columns):]
		for c := range columns {
			size, rest, ok := uvarint(b)
			if !ok || size > uint64(len(rest))+1 {
				return nil, malformed("row %d is cut off", i+1)
			}
			b = rest
			if size == 0 {
				rows[i][c] = datum.Null
				continue
			}
			d, err := columns[c].Type.ParseBinary(b[:size-1:size-1], -1)
			if err != nil {
				return nil, err
			}
			rows[i][c], b = d, b[size-1:]
		}
	}
	if len(b) != 0 {
		return nil, malformed("%d bytes follow the last row", len(b))
	}
	return rows, nil
}

// uvarint reads a shortest varint.
func uvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}

func malformed(format string, args ...any) error {
	return pgerr.New(pgerr.InvalidBinaryRepresentation, "malformed result of a transaction").WithDetail(format, args...)
}
