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
	steps []placeStep
}

// placeStep goes from a value into a part of it: a field, or an element or slice.
type placeStep struct {
	field string
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
	// free: the sites deliver values of their own types, because what is
	// subscripted is jsonb or not known before run time.
	free bool
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
	b.steps(pl, t, path)
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

// steps resolves what follows the variable or its field. t is nil-typed where the
// type is known at run time only.
func (b *builder) steps(pl *place, t *target, path []step) {
	typ := pl.typ
	if pl.kind == dynamicField {
		typ = datum.Type{}
	}
	for len(path) > 0 {
		if f := path[0].field; f != "" {
			if typ.Desc != nil && (typ.Root().Kind != datum.Composite) {
				b.fail(pgerr.New(pgerr.SyntaxError, "\"%s\" is not a known variable", t.text()))
				return
			}
			pl.steps, path = append(pl.steps, placeStep{field: f}), path[1:]
		} else {
			free := typ.Desc == nil || typ.Root().Elem == nil
			want := int4
			if free {
				want = datum.Type{}
			}
			var subs []subscript
			for len(path) > 0 && path[0].field == "" {
				s := &path[0]
				subs = append(subs, subscript{slice: s.slice, index: b.optional(s.index, want), lo: b.optional(s.lo, want), hi: b.optional(s.hi, want), free: free})
				path = path[1:]
			}
			pl.steps = append(pl.steps, placeStep{subs: subs})
		}
		if typ.Desc == nil {
			continue
		}
		next, err := pl.steps[len(pl.steps)-1].into(typ)
		if err != nil {
			if e, ok := pgerr.From(err); ok {
				b.fail(e)
			}
			return
		}
		typ = next
	}
}

// into is the type of the part of a value of type t that the step leads to.
func (s *placeStep) into(t datum.Type) (datum.Type, error) {
	root := t.Root()
	if s.field != "" {
		for _, f := range root.Fields {
			if f.Name == s.field && root.Kind == datum.Composite {
				return f.Type, nil
			}
		}
		if root.Kind == datum.Composite {
			return t, pgerr.New(pgerr.UndefinedColumn, "cannot assign to field \"%s\" because there is no such column in data type %s", s.field, datum.FormatType(root))
		}
		return t, pgerr.New(pgerr.DatatypeMismatch, "cannot assign to field \"%s\" because type %s is not a composite type", s.field, datum.FormatType(root))
	}
	switch {
	case root.Desc == datum.JSONB && s.slices():
		return t, pgerr.New(pgerr.DatatypeMismatch, "jsonb subscript does not support slices")
	case root.Desc == datum.JSONB:
		return root, nil
	case root.Elem == nil:
		return t, pgerr.New(pgerr.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", datum.FormatType(t))
	case s.slices():
		return root, nil
	}
	return datum.Type{Desc: root.Elem, Mod: root.Mod}, nil
}

func (s *placeStep) slices() bool {
	for i := range s.subs {
		if s.subs[i].slice {
			return true
		}
	}
	return false
}

// static reports whether the type of the place does not depend on a RECORD.
func (pl *place) static() bool { return pl.kind == scalarPlace }

// valueType is the type of what is assigned: of an element, for a subscript. Where
// the steps do not fit, storing says so.
func (pl *place) valueType(t datum.Type) datum.Type {
	for i := range pl.steps {
		if t.Desc == nil {
			return t
		}
		var err error
		if t, err = pl.steps[i].into(t); err != nil {
			return t
		}
	}
	return t
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
		if d, err = fr.assignPart(r.typ.types[i], r.vals[i], pl.steps, d); err != nil {
			return err
		}
		r.vals[i], r.null = d, false
		return nil
	}
	if len(pl.steps) > 0 {
		var err error
		if d, err = fr.assignPart(pl.typ, fr.vars[pl.at], pl.steps, d); err != nil {
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
