package plpgsql

import (
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// triggerVars are the variables of a trigger function, in the order in which
// they are declared; NEW and OLD are records.
var triggerVars = []struct{ name, typ string }{
	{"new", "record"}, {"old", "record"}, {"tg_name", "name"}, {"tg_when", "text"}, {"tg_level", "text"},
	{"tg_op", "text"}, {"tg_relid", "oid"}, {"tg_relname", "name"}, {"tg_table_name", "name"},
	{"tg_table_schema", "name"}, {"tg_nargs", "integer"}, {"tg_argv", "text[]"},
}

// Places of variables in triggerVars.
const (
	varNew = iota
	varOld
	varName
	varWhen
	varLevel
	varOp
	varRelid
	varRelname
	varTableName
	varTableSchema
	varNargs
	varArgv
)

func isTrigger(f *catalog.Func) bool { return f.Ret.Desc == datum.Trigger }

// checkTriggerSignature refuses arguments of a trigger function: it gets them in
// TG_ARGV.
func checkTriggerSignature(f *catalog.Func) error {
	if len(f.Args) > 0 {
		return compileContext(f, 1, pgerr.New(pgerr.InvalidFunctionDefinition, "trigger functions cannot have declared arguments").
			WithHint("The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead."))
	}
	return nil
}

// triggerVariables declares what a trigger function is given.
func (p *parser) triggerVariables() {
	if !isTrigger(p.def) {
		return
	}
	for _, t := range triggerVars {
		v := p.declare(t.name, typeRef{kind: namedType, text: t.typ})
		v.lineNo = 0
		p.trigger = append(p.trigger, v)
	}
}

// CallTrigger runs a trigger function. It returns the row that it returned, nil
// for null; the columns of the table that are not dropped.
func (f *Function) CallTrigger(env *exec.Env, t *exec.TriggerCall) ([]datum.Datum, error) {
	p, err := f.program(env.Catalog)
	if err != nil {
		return nil, err
	}
	fr := p.frame(env)
	defer p.release(fr)
	fr.setTrigger(t)
	if err := fr.run(nil); err != nil {
		return nil, err
	}
	if !t.Row || fr.ret.IsNull() {
		return nil, nil
	}
	_, vals := datum.RecordFields(fr.ret)
	want := rowTypeOfDesc(t.Table.Row)
	if !fr.retRow.same(want) {
		fr.at, fr.phase = nil, "during function exit"
		if vals, err = fr.convertTriggerRow(vals, want); err != nil {
			return nil, withContext(err, fr.context())
		}
	}
	return append([]datum.Datum(nil), vals...), nil
}

// convertTriggerRow converts the returned row to the rows of the table.
func (fr *frame) convertTriggerRow(vals []datum.Datum, want *rowType) ([]datum.Datum, error) {
	have := fr.retRow
	mismatch := pgerr.New(pgerr.DatatypeMismatch, "returned row structure does not match the structure of the triggering table")
	if have == nil || len(have.types) != len(want.types) {
		n := len(vals)
		return nil, mismatch.WithDetail("Number of returned columns (%d) does not match expected column count (%d).", n, len(want.types))
	}
	for i, t := range have.types {
		if !sameForResult(t, want.types[i]) {
			return nil, mismatch.WithDetail("Returned type %s does not match expected type %s in column %d.",
				datum.FormatType(t), datum.FormatType(want.types[i]), i+1)
		}
	}
	return vals, nil
}

// setTrigger fills in the variables of a trigger function.
func (fr *frame) setTrigger(t *exec.TriggerCall) {
	p := fr.p
	row := rowTypeOfDesc(t.Table.Row)
	set := func(v int, d datum.Datum) { fr.vars[p.vars[p.fn.trigger[v].id].at] = d }
	record := func(v int, vals []datum.Datum) {
		r := &fr.recs[p.vars[p.fn.trigger[v].id].rec]
		if vals == nil {
			r.set(row, nil)
			return
		}
		r.set(row, vals)
	}
	record(varNew, t.New)
	record(varOld, t.Old)
	set(varName, datum.Str(t.Name))
	set(varWhen, datum.Str(t.When))
	set(varOp, datum.Str(t.Op))
	level := "STATEMENT"
	if t.Row {
		level = "ROW"
	}
	set(varLevel, datum.Str(level))
	set(varRelid, datum.Int(int64(t.Table.OID)))
	for _, v := range []int{varRelname, varTableName} {
		set(v, datum.Str(t.Table.Name))
	}
	set(varTableSchema, datum.Str(t.Table.Schema))
	set(varNargs, datum.Int(int64(len(t.Args))))
	if len(t.Args) == 0 {
		return // TG_ARGV is null
	}
	args := make([]datum.Datum, len(t.Args))
	for i, a := range t.Args {
		args[i] = datum.Str(a)
	}
	// TG_ARGV counts from 0.
	if argv, err := datum.MakeArrayND(datum.Text, []datum.ArrayDim{{Len: int32(len(args)), Lower: 0}}, args); err == nil {
		set(varArgv, argv)
	}
}

// returnTrigger is RETURN in a trigger function: a row, or null.
func (b *builder) returnTrigger(s *returnStmt) runFunc {
	v := b.site(s.value, datum.Type{})
	return func(fr *frame) (flow, error) {
		pl, err := v.ready(fr)
		if err != nil {
			return goOn, err
		}
		if !isRow(pl.typ) && !(pl.mode == constant && pl.value.IsNull()) {
			return goOn, pgerr.New(pgerr.DatatypeMismatch, "cannot return non-composite value from function returning composite type")
		}
		fr.ret = datum.Null
		if pl.mode == constant {
			return doReturn, nil
		}
		row, vals, err := v.rowValue(fr)
		if err != nil {
			return goOn, err
		}
		if row != nil && vals != nil {
			fr.ret, fr.retRow = datum.MakeRecord(row.types, vals), row
		}
		return doReturn, nil
	}
}

// onlyTrigger refuses an ordinary call of a trigger function.
func (f *Function) onlyTrigger() error {
	return compileContext(f.def, 1, pgerr.New(pgerr.FeatureNotSupported, "trigger functions can only be called as triggers"))
}
