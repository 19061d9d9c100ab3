package plpgsql

import (
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// place is a target of an assignment, resolved.
type place struct {
	info  *varInfo
	kind  placeKind
	at    int        // scalarPlace: in frame.vars
	typ   datum.Type // of the variable or field, before subscripts
	field string     // dynamicField
	subs  []subscript
}

type placeKind uint8

const (
	scalarPlace  placeKind = iota // a scalar, or a field of a row of fixed type
	dynamicField                  // a field of a RECORD variable
	wholeRow
)

// subscript is one dimension of an element or slice.
type subscript struct {
	index  *site
	slice  bool
	lo, hi *site // of a slice; nil = omitted
}

// place resolves a target.
func (b *builder) place(t *target) *place {
	info := b.p.vars[t.v.id]
	pl := &place{info: info, at: info.at, typ: info.typ}
	path := t.path
	if info.rec >= 0 {
		if len(path) == 0 {
			pl.kind = wholeRow
			return pl
		}
		if path[0].field == "" {
			b.fail(pgerr.New(pgerr.DatatypeMismatch, "cannot subscript type record because it does not support subscripting"))
			return pl
		}
		pl.field, path = path[0].field, path[1:]
		if info.row == nil {
			pl.kind = dynamicField
		} else if i := info.row.field(pl.field); i < 0 {
			b.fail(pgerr.New(pgerr.UndefinedColumn, "record \"%s\" has no field \"%s\"", t.v.name, pl.field))
		} else {
			pl.at, pl.typ = info.at+i, info.row.types[i]
		}
	}
	for _, s := range path {
		if s.field != "" {
			b.fail(pgerr.New(pgerr.SyntaxError, "\"%s\" is not a known variable", t.text()))
			return pl
		}
		sub := subscript{slice: s.slice, index: b.optional(s.index, int4), lo: b.optional(s.lo, int4), hi: b.optional(s.hi, int4)}
		pl.subs = append(pl.subs, sub)
	}
	if len(pl.subs) > 0 && pl.kind == scalarPlace && pl.typ.Desc != nil && pl.typ.Elem == nil {
		b.fail(pgerr.New(pgerr.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", datum.FormatType(pl.typ)))
	}
	return pl
}

func (t *target) text() string {
	parts := []string{t.v.name}
	for _, s := range t.path {
		if s.field != "" {
			parts = append(parts, s.field)
		}
	}
	return strings.Join(parts, ".")
}

// static reports whether the type of the place does not depend on a RECORD.
func (pl *place) static() bool { return pl.kind == scalarPlace }

// valueType is the type of what is assigned: of an element, for a subscript.
func (pl *place) valueType(t datum.Type) datum.Type {
	if len(pl.subs) == 0 || t.Desc == nil || t.Elem == nil {
		return t
	}
	for i := range pl.subs {
		if pl.subs[i].slice {
			return t
		}
	}
	return datum.Type{Desc: t.Elem, Mod: t.Mod}
}

// typeNow is the type that a value must have to be stored.
func (pl *place) typeNow(fr *frame) (datum.Type, error) {
	if pl.kind != dynamicField {
		return pl.valueType(pl.typ), nil
	}
	i, err := pl.fieldNow(fr)
	if err != nil {
		return datum.Type{}, err
	}
	return pl.valueType(fr.recs[pl.info.rec].typ.types[i]), nil
}

func (pl *place) fieldNow(fr *frame) (int, error) {
	t := fr.recs[pl.info.rec].typ
	if t == nil {
		if fr.env == nil {
			return 0, errUnassigned
		}
		return 0, notAssigned(pl.info.v)
	}
	i := t.field(pl.field)
	if i < 0 {
		return 0, pgerr.New(pgerr.UndefinedColumn, "record \"%s\" has no field \"%s\"", pl.info.v.name, pl.field)
	}
	return i, nil
}

// dependOn adds the row type that the place depends on.
func (pl *place) dependOn(fr *frame, deps []dep) []dep {
	if pl.kind != dynamicField {
		return deps
	}
	for _, d := range deps {
		if d.rec == pl.info.rec {
			return deps
		}
	}
	return append(deps, dep{pl.info.rec, fr.recs[pl.info.rec].typ})
}

// store assigns a value of the right type.
func (pl *place) store(fr *frame, d datum.Datum) error {
	if pl.kind == dynamicField {
		i, err := pl.fieldNow(fr)
		if err != nil {
			return err
		}
		r := &fr.recs[pl.info.rec]
		if d, err = pl.subscripted(fr, r.typ.types[i], r.vals[i], d); err != nil {
			return err
		}
		r.vals[i], r.null = d, false
		return nil
	}
	if len(pl.subs) > 0 {
		var err error
		if d, err = pl.subscripted(fr, pl.typ, fr.vars[pl.at], d); err != nil {
			return err
		}
	}
	if pl.info.rec >= 0 {
		fr.recs[pl.info.rec].null = false
	} else if pl.info.v.notNull && d.IsNull() {
		return nullForbidden(pl.info.v)
	}
	fr.vars[pl.at] = d
	return nil
}

func nullForbidden(v *variable) error {
	return pgerr.New(pgerr.NullValueNotAllowed, "null value cannot be assigned to variable \"%s\" declared NOT NULL", v.name)
}

// intoProg is an INTO clause, resolved: a record, or a list of places.
type intoProg struct {
	rec    *varInfo
	places []*place
	strict bool
}

func (b *builder) into(in *into) *intoProg {
	if in == nil {
		return nil
	}
	out := &intoProg{strict: in.strict}
	for i := range in.targets {
		pl := b.place(&in.targets[i])
		if pl.kind == wholeRow {
			if len(in.targets) > 1 {
				b.fail(pgerr.New(pgerr.SyntaxError, "record variable cannot be part of multiple-item INTO list"))
			}
			out.rec = pl.info
			return out
		}
		out.places = append(out.places, pl)
	}
	return out
}

// castsFor finds the conversions from the columns of a query to the targets;
// nil entries need none. Targets in RECORD variables are left to run time.
func (in *intoProg) castsFor(p *program, cols *rowType) ([]*exec.ExprProgram, error) {
	var casts []*exec.ExprProgram
	add := func(i int, to datum.Type) error {
		var x *exec.ExprProgram
		var err error
		if i < len(cols.types) {
			x, err = p.cast(cols.types[i], to)
		}
		casts = append(casts, x)
		return err
	}
	if in.rec != nil && in.rec.row != nil {
		for i, t := range in.rec.row.types {
			if err := add(i, t); err != nil {
				return nil, err
			}
		}
	}
	for i, pl := range in.places {
		to := pl.valueType(pl.typ)
		if !pl.static() {
			to = datum.Type{}
		}
		if err := add(i, to); err != nil {
			return nil, err
		}
	}
	return casts, nil
}

// move stores a row into the targets; a nil row is no row: all become null.
// Columns that are missing are null, columns too many are dropped. Nothing of
// row is kept.
func (in *intoProg) move(fr *frame, cols *rowType, casts []*exec.ExprProgram, row []datum.Datum) error {
	if in.rec != nil {
		return in.moveRecord(fr, cols, casts, row)
	}
	for i, pl := range in.places {
		d := datum.Null
		if i < len(row) {
			d = row[i]
		}
		var err error
		if pl.static() {
			d, err = fr.convert(casts[i], d)
		} else if i < len(row) {
			var t datum.Type
			if t, err = pl.typeNow(fr); err == nil {
				d, err = fr.convertType(d, cols.types[i], t)
			}
		}
		if err != nil {
			return err
		}
		if err := pl.store(fr, d); err != nil {
			return err
		}
	}
	return nil
}

func (in *intoProg) moveRecord(fr *frame, cols *rowType, casts []*exec.ExprProgram, row []datum.Datum) error {
	r := &fr.recs[in.rec.rec]
	if in.rec.row == nil {
		r.set(cols, row)
		return nil
	}
	r.null = row == nil
	for i := range r.vals {
		d := datum.Null
		if i < len(row) {
			var err error
			if d, err = fr.convert(casts[i], row[i]); err != nil {
				return err
			}
		}
		r.vals[i] = d
	}
	return nil
}
