package sql

import (
	"bytes"
	"io"
	"testing"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

var fuzzTable = &catalog.Table{Name: "t", Columns: []catalog.Column{
	{Name: "a", Type: datum.T(datum.Text)}, {Name: "b", Type: datum.T(datum.Int4)}, {Name: "c", Type: datum.T(datum.Bytea)},
}}

// decodeAll decodes data that comes n bytes at a time.
func decodeAll(o *copyOptions, data []byte, n int) ([][]datum.Datum, string) {
	f := datum.ContractFormat
	d := &copyDecoder{copyOptions: o, table: fuzzTable, columns: []int{0, 1, 2}, format: &f, notNull: make([]bool, 3), toNull: make([]bool, 3)}
	d.in.read = func() ([]byte, error) {
		if len(data) == 0 {
			return nil, io.EOF
		}
		p := data[:min(n, len(data))]
		data = data[len(p):]
		return p, nil
	}
	var rows [][]datum.Datum
	for {
		row, err := d.next()
		if err != nil {
			e, ok := pgerr.From(err)
			if !ok {
				return rows, "FAULT " + err.Error()
			}
			return rows, string(e.Code) + e.Message + e.Context
		}
		if row == nil {
			return rows, ""
		}
		rows = append(rows, row)
	}
}

func encodeAll(o *copyOptions, rows [][]datum.Datum) []byte {
	f := datum.ContractFormat
	e := copyEncoder{copyOptions: o, quoted: make([]bool, 3)}
	for _, c := range fuzzTable.Columns {
		e.columns = append(e.columns, plan.Column{Name: c.Name, Type: c.Type})
	}
	out := e.begin(nil)
	for _, r := range rows {
		out = e.row(out, r, &f)
	}
	return e.end(out)
}

// fuzzCopy: whatever the data, decoding ends with rows or an error of the
// client, the same in pieces of any size, and rows that it gives survive being
// encoded and decoded again.
func fuzzCopy(f *testing.F, o *copyOptions, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		rows, failure := decodeAll(o, data, max(len(data), 1))
		if len(failure) > 5 && failure[:5] == "FAULT" {
			t.Fatal(failure)
		}
		again, other := decodeAll(o, data, 1+int(uint(n)%16))
		if other != failure || !bytes.Equal(encodeAll(o, rows), encodeAll(o, again)) {
			t.Fatalf("at once: %d rows, %q; in pieces: %d rows, %q", len(rows), failure, len(again), other)
		}
		encoded := encodeAll(o, rows)
		back, failure := decodeAll(o, encoded, 1<<20)
		if failure != "" || !bytes.Equal(encoded, encodeAll(o, back)) {
			t.Fatalf("%q gave %q: %s", data, encoded, failure)
		}
	})
}

func FuzzCopyText(f *testing.F) {
	fuzzCopy(f, &copyOptions{delimiter: '\t', null: `\N`},
		"a\t1\t\\\\x00\n", "\\N\t\\N\t\\N\r\n\\.\r\n", "a\\tb\\101\\x41\t2\tx\r", "\\.\n", "x\\\n\t1\t\n", "\t1\t")
}

func FuzzCopyCSV(f *testing.F) {
	fuzzCopy(f, &copyOptions{csv: true, delimiter: ',', quote: '"', escape: '"'},
		"a,1,x\n", "\"a\"\"b,\n\",2,\r\n\\.\r\n", ",,\n", "\"", "\"\",1,\"\"\r")
}

func FuzzCopyBinary(f *testing.F) {
	o := &copyOptions{binary: true}
	fuzzCopy(f, o, string(encodeAll(o, [][]datum.Datum{{datum.Str("x"), datum.Int(5), datum.Null}})), copySignature, copySignature+"\x00\x00\x00\x00\x00\x00\x00\x01z\xff\xff")
}
