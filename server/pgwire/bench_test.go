package pgwire

import (
	"io"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

func benchRow() ([]plan.Column, []datum.Datum) {
	cols := []plan.Column{
		{Name: "id", Type: datum.T(datum.Int8)}, {Name: "owner", Type: datum.T(datum.Text)},
		{Name: "n", Type: datum.T(datum.Int4)}, {Name: "x", Type: datum.T(datum.Float8)}, {Name: "gone", Type: datum.T(datum.Text)},
	}
	row := []datum.Datum{datum.Int(1234567), datum.Str("alice of the first organization"), datum.Int(-42), datum.Float(0.1), datum.Null}
	return cols, row
}

// What a DataRow looks like must not depend on how it is encoded.
func TestDataRowBytes(t *testing.T) {
	cols, row := benchRow()
	f := &datum.ContractFormat
	for _, codes := range [][]int16{nil, {0}, {1}, {0, 1, 1, 0, 0}} {
		want := &pgproto3.DataRow{Values: make([][]byte, len(row))}
		for i := range row {
			switch {
			case row[i].IsNull():
			case formatOf(codes, i) == 0:
				want.Values[i] = cols[i].Type.Append([]byte{}, row[i], f)
			default:
				want.Values[i] = cols[i].Type.AppendBinary([]byte{}, row[i])
			}
		}
		expect, err := want.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendDataRow(nil, cols, codes, f, row); string(got) != string(expect) {
			t.Errorf("codes %v:\n got %x\nwant %x", codes, got, expect)
		}
	}
}

func TestDataRowDoesNotAllocate(t *testing.T) {
	cols, row := benchRow()
	w := &writer{w: io.Discard}
	write := func() {
		for range 2000 {
			if err := w.dataRow(cols, nil, &datum.ContractFormat, row); err != nil {
				t.Fatal(err)
			}
		}
	}
	write() // the buffer grows
	if n := testing.AllocsPerRun(10, write); n != 0 {
		t.Errorf("%v allocations for 2000 rows", n)
	}
}

func BenchmarkDataRow(b *testing.B) {
	cols, row := benchRow()
	for _, bm := range []struct {
		name  string
		codes []int16
	}{{"text", nil}, {"binary", []int16{1}}} {
		b.Run(bm.name, func(b *testing.B) {
			w := &writer{w: io.Discard}
			b.ReportAllocs()
			for b.Loop() {
				if err := w.dataRow(cols, bm.codes, &datum.ContractFormat, row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// The same through pgproto3.DataRow, which wants every value as a slice.
	b.Run("pgproto3", func(b *testing.B) {
		var buf, values []byte
		m := &pgproto3.DataRow{Values: make([][]byte, len(row))}
		b.ReportAllocs()
		for b.Loop() {
			values = values[:0]
			for i := range row {
				m.Values[i] = nil
				if !row[i].IsNull() {
					start := len(values)
					values = cols[i].Type.Append(values, row[i], &datum.ContractFormat)
					m.Values[i] = values[start:]
				}
			}
			buf, _ = m.Encode(buf[:0])
		}
	})
}

// BenchmarkRoundTrip is a prepared point query over a socket.
func BenchmarkRoundTrip(b *testing.B) {
	_, addr := start(b, nil)
	c := connect(b, addr)
	c.fe.Send(&pgproto3.Parse{Name: "s", Query: "SELECT $1::int4"})
	c.fe.Send(&pgproto3.Sync{})
	if err := c.fe.Flush(); err != nil {
		b.Fatal(err)
	}
	c.collect(1)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		c.fe.Send(&pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{strconv.AppendInt(nil, int64(n), 10)}})
		c.fe.Send(&pgproto3.Execute{})
		c.fe.Send(&pgproto3.Sync{})
		if err := c.fe.Flush(); err != nil {
			b.Fatal(err)
		}
		for {
			m, err := c.fe.Receive()
			if err != nil {
				b.Fatal(err)
			}
			if e, ok := m.(*pgproto3.ErrorResponse); ok {
				b.Fatal(e.Message)
			}
			if _, ok := m.(*pgproto3.ReadyForQuery); ok {
				break
			}
		}
	}
}
