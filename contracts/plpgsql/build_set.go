package plpgsql

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// resultTypes are the columns that a set-returning function hands out; nil if
// only the caller knows (SETOF record).
func (p *program) resultTypes() []datum.Type {
	if len(p.outs) > 0 {
		types := make([]datum.Type, len(p.outs))
		for i, o := range p.outs {
			types[i] = o.valueType()
		}
		return types
	}
	if isRow(p.fn.def.Ret) {
		if p.retRow == nil {
			return nil
		}
		return p.retRow.types
	}
	return []datum.Type{p.fn.def.Ret}
}

func errNotInSet() error {
	return pgerr.New(pgerr.FeatureNotSupported, "set-valued function called in context that cannot accept a set")
}

func (b *builder) returnNext(s *returnNextStmt) runFunc {
	p := b.p
	if s.value == nil {
		return func(fr *frame) (flow, error) {
			if fr.emit == nil {
				return goOn, errNotInSet()
			}
			return goOn, fr.emit(fr.outValues())
		}
	}
	v := b.site(s.value, datum.Type{})
	if !isRow(p.fn.def.Ret) {
		ret := p.fn.def.Ret
		return func(fr *frame) (flow, error) {
			if fr.emit == nil {
				return goOn, errNotInSet()
			}
			pl, err := v.ready(fr)
			if err != nil {
				return goOn, err
			}
			d, err := v.value(fr, pl)
			if err == nil {
				d, err = fr.convertType(d, pl.typ, ret)
			}
			if err != nil {
				return goOn, err
			}
			fr.buf = append(fr.buf[:0], d)
			return goOn, fr.emit(fr.buf)
		}
	}
	return func(fr *frame) (flow, error) {
		if fr.emit == nil {
			return goOn, errNotInSet()
		}
		row, vals, err := v.rowValue(fr)
		if err != nil {
			return goOn, err
		}
		return goOn, fr.emitRow(row, vals)
	}
}

// emitRow hands out a row value of a function returning SETOF a row type.
func (fr *frame) emitRow(row *rowType, vals []datum.Datum) error {
	want := fr.p.retRow
	if want == nil {
		want = row
	}
	if want == nil {
		return pgerr.New(pgerr.DatatypeMismatch, "wrong record type supplied in RETURN NEXT")
	}
	if vals == nil {
		vals = make([]datum.Datum, len(want.types))
		for i := range vals {
			vals[i] = datum.Null
		}
		return fr.emit(vals)
	}
	out, err := fr.convertRow(row, vals, want)
	if err != nil {
		return err
	}
	return fr.emit(out)
}

// convertRow converts a row by position; the number of columns must agree.
func (fr *frame) convertRow(row *rowType, vals []datum.Datum, want *rowType) ([]datum.Datum, error) {
	if row == nil || row == want {
		return vals, nil
	}
	if len(row.types) != len(want.types) {
		return nil, pgerr.New(pgerr.DatatypeMismatch, "returned record type does not match expected record type").
			WithDetail("Number of returned columns (%d) does not match expected column count (%d).", len(row.types), len(want.types))
	}
	var out []datum.Datum
	for i, t := range row.types {
		if !sameForResult(t, want.types[i]) {
			return nil, pgerr.New(pgerr.DatatypeMismatch, "returned record type does not match expected record type").
				WithDetail("Returned type %s does not match expected type %s in column %d.",
					datum.FormatType(t), datum.FormatType(want.types[i]), i+1)
		}
		out = append(out, vals[i])
	}
	return out, nil
}

// sameForResult is PostgreSQL's rule for rows converted by position: the types
// are equal, and so are the modifiers if the target has one.
func sameForResult(have, want datum.Type) bool {
	return have.Same(want) && (want.Mod < 0 || have.Mod == want.Mod)
}

func (b *builder) returnQuery(s *returnQueryStmt) runFunc {
	found := b.found()
	if s.dyn {
		d := b.dynamic(s.query, s.using)
		return func(fr *frame) (flow, error) {
			if fr.emit == nil {
				return goOn, errNotInSet()
			}
			text, prog, params, err := d.prepare(fr)
			if err != nil {
				return goOn, err
			}
			err = fr.emitQuery(prog, params, found)
			if err != nil {
				err = inSQL(err, "SQL statement", text, 0, 0)
			}
			return goOn, err
		}
	}
	q := b.site(s.query, datum.Type{})
	b.check(func(_ *frame, c *checker) {
		if pl := q.cur.Load(); pl != nil {
			c.add(b.p.fitsResult(pl.cols), s.line(), s.title())
		}
	})
	return func(fr *frame) (flow, error) {
		if fr.emit == nil {
			return goOn, errNotInSet()
		}
		pl, err := q.ready(fr)
		if err != nil {
			return goOn, err
		}
		pl.bring(fr)
		if err := fr.emitQuery(pl.prog, fr.vars, found); err != nil {
			return goOn, q.placed(err, 0)
		}
		return goOn, nil
	}
}

// emitQuery runs a query and hands its rows out.
func (fr *frame) emitQuery(prog *exec.Program, params []datum.Datum, found int) error {
	cols := prog.Plan().Columns
	if cols == nil {
		return pgerr.New(pgerr.SyntaxError, "cannot open %s query as cursor", prog.Plan().Command)
	}
	if err := fr.p.fitsResult(rowTypeOf(cols)); err != nil {
		return err
	}
	c, err := prog.Open(fr.env, params)
	if err != nil {
		return err
	}
	n := int64(0)
	for {
		row, err := c.Next()
		if err == nil && row != nil {
			n++
			err = fr.emit(row)
		}
		if err != nil {
			c.Close()
			return err
		}
		if row == nil {
			break
		}
	}
	fr.rowCount = n
	fr.setFound(found, n > 0)
	return c.Close()
}

// fitsResult compares the columns of a query with those of the result.
func (p *program) fitsResult(cols *rowType) error {
	want := p.resultTypes()
	if want == nil || cols == nil {
		return nil
	}
	mismatch := pgerr.New(pgerr.DatatypeMismatch, "structure of query does not match function result type")
	if len(cols.types) != len(want) {
		return mismatch.WithDetail("Number of returned columns (%d) does not match expected column count (%d).", len(cols.types), len(want))
	}
	for i := range want {
		if !sameForResult(cols.types[i], want[i]) {
			return mismatch.WithDetail("Returned type %s does not match expected type %s in column %d.",
				datum.FormatType(cols.types[i]), datum.FormatType(want[i]), i+1)
		}
	}
	return nil
}
