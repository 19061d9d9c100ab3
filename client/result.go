package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Result is what a committed call returned.
type Result struct {
	ID      block.TxID
	columns []pgconn.FieldDescription
	rows    []Row
}

// Row is one row of a result.
type Row struct {
	columns []pgconn.FieldDescription
	values  [][]byte // binary form; nil is NULL
}

// Columns names the columns.
func (r *Result) Columns() []string {
	names := make([]string, len(r.columns))
	for i := range r.columns {
		names[i] = r.columns[i].Name
	}
	return names
}

// Len is the number of rows.
func (r *Result) Len() int { return len(r.rows) }

// Rows are the rows in order.
func (r *Result) Rows() iter.Seq2[int, Row] {
	return func(yield func(int, Row) bool) {
		for i, row := range r.rows {
			if !yield(i, row) {
				return
			}
		}
	}
}

// Scan reads the first row, as pgx does.
func (r *Result) Scan(dest ...any) error {
	if len(r.rows) == 0 {
		return errors.New("client: the call returned no row")
	}
	return r.rows[0].Scan(dest...)
}

// Scan reads the values of a row into variables, as pgx does.
func (r Row) Scan(dest ...any) error {
	if len(dest) != len(r.values) {
		return fmt.Errorf("client: %d values for %d variables", len(r.values), len(dest))
	}
	for i := range dest {
		if err := types.Scan(r.columns[i].DataTypeOID, pgtype.BinaryFormatCode, r.values[i], dest[i]); err != nil {
			return fmt.Errorf("client: column %s: %w", r.columns[i].Name, err)
		}
	}
	return nil
}

// newResult reads the canonical bytes of a result: number of columns, number of
// rows, and for each value 0 or its length plus one, and its bytes.
func newResult(id block.TxID, columns []pgconn.FieldDescription, b []byte) (*Result, error) {
	r := &Result{ID: id, columns: columns}
	if len(b) == 0 {
		return r, nil
	}
	read := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b = nil
			return 0
		}
		b = b[n:]
		return v
	}
	if n := read(); n != uint64(len(columns)) {
		return nil, fmt.Errorf("client: the result has %d columns, the function %d", n, len(columns))
	}
	rows := read()
	if rows > uint64(len(b)) {
		return nil, errMalformed
	}
	for range rows {
		row := Row{columns: columns, values: make([][]byte, len(columns))}
		for i := range row.values {
			if len(b) == 0 {
				return nil, errMalformed
			}
			size := read()
			if size == 0 {
				continue
			}
			if size-1 > uint64(len(b)) {
				return nil, errMalformed
			}
			row.values[i], b = b[:size-1:size-1], b[size-1:]
		}
		r.rows = append(r.rows, row)
	}
	if len(b) != 0 {
		return nil, errMalformed
	}
	return r, nil
}

var errMalformed = errors.New("client: the node sent a malformed result")
