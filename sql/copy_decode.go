package sql

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// copyDecoder makes rows of the data of COPY FROM.
type copyDecoder struct {
	*copyOptions
	table   *catalog.Table
	columns []int
	format  *datum.Format
	notNull []bool // FORCE_NOT_NULL
	toNull  []bool // FORCE_NULL

	in      copyInput
	lines   lineReader
	begun   bool
	reading bool  // a row was begun: errors have a place
	number  int64 // of the row, for the binary format
	fields  []copyField

	// What the context of an error tells.
	line      string
	lineValid bool
	column    string
	value     string // of column, if valued
	valued    bool
	reported  bool // the error has its context already
}

// flags resolves the options that name columns.
func (d *copyDecoder) flags() (err error) {
	cols := make([]plan.Column, len(d.columns))
	for i, c := range d.columns {
		cols[i].Name = d.table.Columns[c].Name
	}
	if d.notNull, err = columnFlags(cols, d.forceNotNull, "FORCE_NOT_NULL", d.table); err != nil {
		return err
	}
	d.toNull, err = columnFlags(cols, d.forceNull, "FORCE_NULL", d.table)
	return err
}

// next returns the next row, nil at the end. Errors carry their context.
func (d *copyDecoder) next() ([]datum.Datum, error) {
	row, err := d.decode()
	if err == nil {
		return row, nil
	}
	if e, ok := pgerr.From(err); ok && d.reading {
		e.AddContext(d.where())
		d.reported = true
	}
	return nil, err
}

func (d *copyDecoder) decode() ([]datum.Datum, error) {
	if !d.begun {
		d.begun = true
		d.lines = lineReader{copyOptions: d.copyOptions, in: &d.in}
		if err := d.begin(); err != nil {
			return nil, err
		}
	}
	d.column, d.valued, d.lineValid = "", false, false
	if d.binary {
		return d.binaryRow()
	}
	line, ok, err := d.readLine()
	if err != nil || !ok {
		return nil, err
	}
	return d.textRow(line)
}

// readLine reads a line and keeps it for the context of errors.
func (d *copyDecoder) readLine() ([]byte, bool, error) {
	d.reading = true
	line, ok, err := d.lines.next()
	if err != nil || !ok {
		d.reading = err != nil
		return nil, false, err
	}
	d.line = string(line)
	err = datum.CheckText(d.line)
	d.lineValid = err == nil
	return line, true, err
}

// begin reads what stands before the first row.
func (d *copyDecoder) begin() error {
	if d.binary {
		return d.binaryHeader()
	}
	if !d.header {
		return nil
	}
	line, ok, err := d.readLine()
	if err != nil || !ok || !d.matchHeader {
		return err
	}
	if err := d.split(line); err != nil {
		return err
	}
	if len(d.fields) != len(d.columns) {
		return pgerr.New(pgerr.BadCopyFileFormat, "wrong number of fields in header line: got %d, expected %d", len(d.fields), len(d.columns))
	}
	for i, f := range d.fields {
		want := d.table.Columns[d.columns[i]].Name
		if f.null {
			return pgerr.New(pgerr.BadCopyFileFormat, "column name mismatch in header line field %d: got null value (\"%s\"), expected \"%s\"", i+1, d.null, want)
		}
		if f.text != want {
			return pgerr.New(pgerr.BadCopyFileFormat, "column name mismatch in header line field %d: got \"%s\", expected \"%s\"", i+1, f.text, want)
		}
	}
	return nil
}

func (d *copyDecoder) split(line []byte) (err error) {
	if d.csv {
		d.fields, err = d.appendCSVFields(d.fields[:0], line)
		return err
	}
	d.fields = d.appendTextFields(d.fields[:0], line)
	if bytes.IndexByte(line, '\\') < 0 {
		return nil
	}
	for _, f := range d.fields { // escapes can make what is no text
		if err := datum.CheckText(f.text); err != nil {
			return err
		}
	}
	return nil
}

func (d *copyDecoder) textRow(line []byte) ([]datum.Datum, error) {
	if len(d.columns) == 0 {
		if len(line) > 0 {
			return nil, errExtraData()
		}
		return []datum.Datum{}, nil
	}
	if err := d.split(line); err != nil {
		return nil, err
	}
	if len(d.fields) > len(d.columns) {
		return nil, errExtraData()
	}
	row := make([]datum.Datum, len(d.columns))
	for i, c := range d.columns {
		col := &d.table.Columns[c]
		if i >= len(d.fields) {
			d.column, d.valued = "", false
			return nil, pgerr.New(pgerr.BadCopyFileFormat, "missing data for column \"%s\"", col.Name)
		}
		f := d.fields[i]
		if d.csv {
			f = d.force(f, i)
		}
		if f.null {
			row[i] = datum.Null
			continue
		}
		d.column, d.value, d.valued = col.Name, f.text, true
		var err error
		if row[i], err = parseField(f.text, col.Type, d.format); err != nil {
			return nil, err
		}
	}
	d.column, d.valued = "", false
	return row, nil
}

func errExtraData() error {
	return pgerr.New(pgerr.BadCopyFileFormat, "extra data after last expected column")
}

// force applies FORCE_NOT_NULL and FORCE_NULL.
func (d *copyDecoder) force(f copyField, i int) copyField {
	switch {
	case f.null && d.notNull[i]:
		return copyField{text: d.null}
	case !f.null && d.toNull[i] && f.text == d.null:
		return copyField{null: true}
	}
	return f
}

func parseField(text string, t datum.Type, f *datum.Format) (datum.Datum, error) {
	if t.Parse == nil {
		return datum.Null, pgerr.New(pgerr.UndefinedFunction, "no input function available for type %s", t.Name)
	}
	return t.Parse(text, t.Mod, f)
}

// bytes consumes n bytes; nil if the data ends before.
func (d *copyDecoder) bytes(n int) ([]byte, error) {
	if n == 0 {
		return []byte{}, nil
	}
	if _, ok, err := d.in.byte(n - 1); err != nil || !ok {
		return nil, err
	}
	return d.in.take(n), nil
}

func (d *copyDecoder) binaryHeader() error {
	bad := func(message string) error { return pgerr.New(pgerr.BadCopyFileFormat, "%s", message) }
	b, err := d.bytes(len(copySignature))
	if err != nil {
		return err
	}
	if string(b) != copySignature {
		return bad("COPY file signature not recognized")
	}
	if b, err = d.bytes(4); err != nil {
		return err
	}
	if b == nil {
		return bad("invalid COPY file header (missing flags)")
	}
	switch flags := binary.BigEndian.Uint32(b); {
	case flags&(1<<16) != 0:
		return bad("invalid COPY file header (WITH OIDS)")
	case flags>>16 != 0:
		return bad("unrecognized critical flags in COPY file header")
	}
	if b, err = d.bytes(4); err != nil {
		return err
	}
	if b == nil || int32(binary.BigEndian.Uint32(b)) < 0 {
		return bad("invalid COPY file header (missing length)")
	}
	n := int(binary.BigEndian.Uint32(b))
	if n > maxCopyRow {
		return bad("invalid COPY file header (wrong length)")
	}
	if b, err = d.bytes(n); err == nil && b == nil {
		err = bad("invalid COPY file header (wrong length)")
	}
	return err
}

func (d *copyDecoder) binaryRow() ([]datum.Datum, error) {
	d.number++
	d.reading = true
	b, err := d.bytes(2)
	if err != nil {
		return nil, err
	}
	if b == nil { // without trailer: old clients send none
		d.reading = false
		return nil, nil
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	if n == -1 {
		d.reading = false
		if _, more, err := d.in.byte(0); err != nil || more {
			if err == nil {
				err = pgerr.New(pgerr.BadCopyFileFormat, "received copy data after EOF marker")
			}
			d.reading = true
			return nil, err
		}
		return nil, nil
	}
	if n != len(d.columns) {
		return nil, pgerr.New(pgerr.BadCopyFileFormat, "row field count is %d, expected %d", n, len(d.columns))
	}
	row := make([]datum.Datum, n)
	for i, c := range d.columns {
		col := &d.table.Columns[c]
		d.column = col.Name
		if row[i], err = d.binaryField(col.Type); err != nil {
			return nil, err
		}
	}
	d.column = ""
	return row, nil
}

func (d *copyDecoder) binaryField(t datum.Type) (datum.Datum, error) {
	eof := func() error { return pgerr.New(pgerr.BadCopyFileFormat, "unexpected EOF in COPY data") }
	b, err := d.bytes(4)
	if err != nil {
		return datum.Null, err
	}
	if b == nil {
		return datum.Null, eof()
	}
	n := int(int32(binary.BigEndian.Uint32(b)))
	switch {
	case n == -1:
		return datum.Null, nil
	case n < 0 || n > maxCopyRow:
		return datum.Null, pgerr.New(pgerr.BadCopyFileFormat, "invalid field size")
	}
	if b, err = d.bytes(n); err != nil {
		return datum.Null, err
	}
	if b == nil {
		return datum.Null, eof()
	}
	if t.ParseBinary == nil {
		return datum.Null, pgerr.New(pgerr.UndefinedFunction, "no binary input function available for type %s", t.Name)
	}
	return t.ParseBinary(append([]byte(nil), b...), t.Mod)
}

// where is the context of an error (CopyFromErrorCallback).
func (d *copyDecoder) where() string {
	number := d.lines.lines
	if d.binary {
		number = d.number
	}
	at := fmt.Sprintf("COPY %s, line %d", d.table.Name, number)
	switch {
	case d.binary && d.column != "":
		return at + ", column " + d.column
	case d.binary:
		return at
	case d.column != "" && d.valued:
		return at + ", column " + d.column + ": \"" + shorten(d.value) + "\""
	case d.lineValid:
		return at + ": \"" + shorten(d.line) + "\""
	}
	return at
}

// shorten bounds what an error shows of data.
func shorten(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
