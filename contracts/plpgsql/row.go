package plpgsql

import (
	"strconv"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// rowType is the shape of a row: what a record variable holds. Two of them are
// the same if names and types are.
type rowType struct {
	names []string
	types []datum.Type
	desc  *datum.Desc // record with these fields, for the planner
}

func newRowType(names []string, types []datum.Type) *rowType {
	d := *datum.Record
	d.Kind = datum.Composite
	for i := range names {
		d.Fields = append(d.Fields, datum.Field{Name: names[i], Type: types[i]})
	}
	return &rowType{names: names, types: types, desc: &d}
}

func rowTypeOf(cols []plan.Column) *rowType {
	names, types := make([]string, len(cols)), make([]datum.Type, len(cols))
	for i := range cols {
		names[i], types[i] = cols[i].Name, cols[i].Type
	}
	return newRowType(names, types)
}

// rowTypeOfDesc is the row type of a composite type or a record with known
// fields; nil if the fields are not known.
func rowTypeOfDesc(d *datum.Desc) *rowType {
	if d == nil || len(d.Fields) == 0 {
		return nil
	}
	r := &rowType{desc: d}
	for _, f := range d.Fields {
		r.names, r.types = append(r.names, f.Name), append(r.types, f.Type)
	}
	return r
}

// rowTypeOfOut is the row that a function with OUT arguments returns.
func rowTypeOfOut(f *catalog.Func) *rowType {
	out := f.OutArgs()
	names, types := make([]string, len(out)), make([]datum.Type, len(out))
	for i, a := range out {
		names[i], types[i] = a.Name, a.Type
		if a.Name == "" {
			names[i] = "column" + strconv.Itoa(i+1)
		}
	}
	return newRowType(names, types)
}

// rowTypeOfValue is the row type of an anonymous record.
func rowTypeOfValue(d datum.Datum) (*rowType, []datum.Datum) {
	oids, vals := datum.RecordFields(d)
	names, types := make([]string, len(oids)), make([]datum.Type, len(oids))
	for i, o := range oids {
		names[i], types[i] = "f"+strconv.Itoa(i+1), datum.T(datum.ByOID(o))
		if types[i].Desc == nil || types[i].Desc == datum.Unknown {
			types[i] = datum.T(datum.Text)
		}
	}
	return newRowType(names, types), vals
}

func (r *rowType) field(name string) int {
	for i, n := range r.names {
		if n == name {
			return i
		}
	}
	return -1
}

func (r *rowType) same(o *rowType) bool {
	if r == o {
		return true
	}
	if r == nil || o == nil || len(r.names) != len(o.names) {
		return false
	}
	for i := range r.names {
		if r.names[i] != o.names[i] || !r.types[i].Same(o.types[i]) || r.types[i].Mod != o.types[i].Mod {
			return false
		}
	}
	return true
}

// isRow reports whether values of a type are rows.
func isRow(t datum.Type) bool {
	return t.Desc != nil && (t.OID == datum.RecordOID || t.Kind == datum.Composite)
}

// record is the run-time state of a record variable.
type record struct {
	typ  *rowType // nil: not assigned yet
	vals []datum.Datum
	null bool // the variable as a whole is null
}

// value is the record as one datum.
func (r *record) value() datum.Datum {
	if r.null || r.typ == nil {
		return datum.Null
	}
	return datum.MakeRecord(r.typ.types, r.vals)
}

// set makes the record a row of another type; vals are copied. A nil vals is
// the null row of the type.
func (r *record) set(t *rowType, vals []datum.Datum) {
	n := len(t.types)
	if cap(r.vals) < n {
		r.vals = make([]datum.Datum, n)
	}
	r.vals = r.vals[:n]
	r.typ, r.null = t, vals == nil
	k := copy(r.vals, vals)
	for i := k; i < n; i++ {
		r.vals[i] = datum.Null
	}
}

// valueType is the type of the variable as a whole.
func (v *varInfo) valueType() datum.Type {
	switch {
	case v.row != nil:
		return datum.T(v.row.desc)
	case v.rec >= 0:
		return datum.T(datum.Record)
	}
	return v.typ
}
