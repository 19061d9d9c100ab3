package plpgsql

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// declared is a variable of a block with its initializer.
type declared struct {
	info *varInfo
	init *site // nil = null
	row  bool  // a record variable
}

func (b *builder) block(s *block) runFunc {
	var decls []declared
	for _, v := range s.decls {
		decls = append(decls, b.declared(v))
	}
	body, label := b.list(s.body), s.label
	plain := func(fr *frame) (flow, error) {
		if err := fr.initialize(decls); err != nil {
			return goOn, err
		}
		fl, err := body.run(fr)
		if err == nil && fl == doExit && fr.leave == label {
			fl = goOn
		}
		return fl, err
	}
	if s.handlers == nil {
		return plain
	}
	return b.guarded(s, decls, body)
}

func (b *builder) declared(v *variable) declared {
	info := b.p.vars[v.id]
	d := declared{info: info, row: info.rec >= 0}
	if v.cursor != nil {
		b.cursorQuery(v)
		return d
	}
	if v.init != nil {
		outer := b.line
		b.line = v.lineNo
		d.init = b.site(v.init, info.typ)
		b.line = outer
	}
	return d
}

// initialize gives the variables of a block their first values.
func (fr *frame) initialize(decls []declared) error {
	for i := range decls {
		d := &decls[i]
		var err error
		switch {
		case d.row:
			err = fr.initializeRow(d)
		case d.init != nil:
			var val datum.Datum
			if val, err = d.init.eval(fr); err == nil && val.IsNull() && d.info.v.notNull {
				err = nullForbidden(d.info.v)
			}
			fr.vars[d.info.at] = val
		case d.info.v.cursor != nil:
			fr.vars[d.info.at] = datum.Str(d.info.v.name)
		default:
			fr.vars[d.info.at] = datum.Null
		}
		if err != nil {
			fr.phase, fr.phaseLine = "during statement block local variable initialization", d.info.v.lineNo
			return err
		}
	}
	return nil
}

func (fr *frame) initializeRow(d *declared) error {
	in := &intoProg{rec: d.info}
	if d.init == nil {
		return fr.storeRow(in, nil, nil)
	}
	row, vals, err := d.init.rowValue(fr)
	if err != nil {
		return err
	}
	if vals == nil && d.info.v.notNull {
		return nullForbidden(d.info.v)
	}
	return fr.storeRow(in, row, vals)
}

// guarded is a block with an EXCEPTION clause: a subtransaction.
func (b *builder) guarded(s *block, decls []declared, body seq) runFunc {
	state, message := b.p.vars[s.sqlstate.id].at, b.p.vars[s.sqlerrm.id].at
	handlers := s.handlers
	bodies := make([]seq, len(handlers))
	for i := range handlers {
		bodies[i] = b.list(handlers[i].body)
	}
	label := s.label
	return func(fr *frame) (flow, error) {
		if err := fr.initialize(decls); err != nil {
			return goOn, err
		}
		here, depth, cursors := fr.at, fr.env.Depth, len(fr.cursors)
		mark := fr.env.Savepoint()
		fl, err := body.run(fr)
		if err != nil {
			e, ok := catchable(err)
			if !ok {
				return goOn, err
			}
			h := handlerFor(handlers, e.Code)
			if h < 0 {
				return goOn, err
			}
			c := *e
			if !fr.rethrown {
				c.AddContext(fr.context())
			}
			fr.rethrown, fr.phase, fr.phaseLine, fr.env.Depth, fr.at = false, "", 0, depth, here
			fr.closeCursors(cursors)
			fr.env.RollbackTo(mark)
			fr.vars[state], fr.vars[message] = datum.Str(string(c.Code)), datum.Str(c.Message)
			outer := fr.handled
			fr.handled = &c
			fl, err = bodies[h].run(fr)
			fr.handled = outer
		} else {
			fr.env.Release(mark)
		}
		if err == nil && fl == doExit && fr.leave == label {
			fl = goOn
		}
		return fl, err
	}
}

func handlerFor(list []handler, code pgerr.Code) int {
	for i := range list {
		for k := range list[i].conditions {
			if list[i].conditions[k].matches(code) {
				return i
			}
		}
	}
	return -1
}

func (b *builder) returnStatement(s *returnStmt) runFunc {
	if s.value == nil {
		return func(*frame) (flow, error) { return doReturn, nil }
	}
	ret := b.p.fn.def.Ret
	if isTrigger(b.p.fn.def) {
		return b.returnTrigger(s)
	}
	v := b.site(s.value, datum.Type{})
	if isRow(ret) {
		return func(fr *frame) (flow, error) {
			if pl, err := v.ready(fr); err != nil {
				return goOn, err
			} else if !isRow(pl.typ) && !(pl.mode == constant && pl.value.IsNull()) {
				return goOn, pgerr.New(pgerr.DatatypeMismatch, "cannot return non-composite value from function returning composite type")
			}
			row, vals, err := v.rowValue(fr)
			if err != nil {
				return goOn, err
			}
			fr.ret = datum.Null
			if row != nil && vals != nil {
				fr.ret, fr.retRow = datum.MakeRecord(row.types, vals), row
			}
			return doReturn, nil
		}
	}
	return func(fr *frame) (flow, error) {
		pl, err := v.ready(fr)
		if err != nil {
			return goOn, err
		}
		d, err := v.value(fr, pl)
		if err != nil {
			return goOn, err
		}
		if pl.typ.Desc != ret.Desc {
			if d, err = fr.convertType(d, pl.typ, ret); err != nil {
				fr.at, fr.phase = nil, "while casting return value to function's return type"
				return goOn, err
			}
		}
		fr.ret = d
		return doReturn, nil
	}
}

// finish makes the result once the body has ended.
func (fr *frame) finish() error {
	p, def := fr.p, fr.p.fn.def
	switch {
	case def.RetSet, isTrigger(def):
	case p.outRow != nil:
		fr.ret, fr.retRow = datum.MakeRecord(p.outRow.types, fr.outValues()), p.outRow
	case len(p.outs) == 1:
		fr.ret = fr.outValues()[0]
	case def.Ret.Desc == datum.Void || def.Kind == "p":
		fr.ret = datum.Datum{}
	case p.retRow != nil && !fr.ret.IsNull():
		return fr.fitRow(p.retRow)
	}
	return nil
}

// fitRow converts the returned row to the declared composite type.
func (fr *frame) fitRow(want *rowType) error {
	_, vals := datum.RecordFields(fr.ret)
	out, err := fr.convertRow(fr.retRow, vals, want)
	if err != nil {
		fr.at, fr.phase = nil, "while casting return value to function's return type"
		return err
	}
	fr.ret, fr.retRow = datum.MakeRecord(want.types, out), want
	return nil
}

// outValues are the OUT arguments as they stand.
func (fr *frame) outValues() []datum.Datum {
	fr.buf = fr.buf[:0]
	for _, o := range fr.p.outs {
		if o.rec >= 0 {
			fr.buf = append(fr.buf, fr.recs[o.rec].value())
			continue
		}
		fr.buf = append(fr.buf, fr.vars[o.at])
	}
	return fr.buf
}

// result is the value of the call.
func (fr *frame) result() datum.Datum { return fr.ret }

// resultRow is the one row of a function called in FROM that returns no set.
func (fr *frame) resultRow() []datum.Datum {
	p := fr.p
	row := p.retRow
	if row == nil {
		row = fr.retRow
	}
	switch {
	case p.outRow != nil:
		return fr.outValues()
	case isRow(p.fn.def.Ret) && !fr.ret.IsNull():
		_, vals := datum.RecordFields(fr.ret)
		return vals
	case isRow(p.fn.def.Ret) && row != nil:
		vals := make([]datum.Datum, len(row.types))
		for i := range vals {
			vals[i] = datum.Null
		}
		return vals
	}
	fr.buf = append(fr.buf[:0], fr.ret)
	return fr.buf
}
