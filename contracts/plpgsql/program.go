package plpgsql

import (
	"strings"
	"sync"

	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// program is a function made ready for one catalog. It is immutable, but for
// the plans that its sites publish.
type program struct {
	fn       *Function
	opts     plan.Options
	vars     []*varInfo // by variable.id
	fixed    []*varInfo // by record number; nil: a RECORD variable
	records  int
	width    int           // of the static part of frame.vars
	initial  []datum.Datum // what frame.vars starts with
	inputs   []input       // where the input arguments go
	outs     []*varInfo    // the OUT arguments
	outRow   *rowType      // their row, if the function returns several
	retRow   *rowType      // the row type of the result, if it is known
	endsWell bool          // the end of the body is a RETURN
	body     []statement
	reads    []rwset.Read // catalog rows that the types of variables came from
	checks   []check
	// inspected: made for an Inspector, not to be run
	inspected bool
	// lead: what the inspected piece has in front of its text, in bytes
	lead int

	frames sync.Pool
	casts  sync.Map // castKey -> *exec.ExprProgram
	// domains are the casts that are applied to nulls too: a domain may be NOT NULL.
	domains sync.Map // *exec.ExprProgram -> bool
}

// varInfo is a variable with its type and place.
type varInfo struct {
	v   *variable
	typ datum.Type // of a scalar
	at  int        // place in frame.vars: of a scalar, or of the first field of a fixed row
	rec int        // number among the records; -1 for a scalar
	row *rowType   // the type of a fixed row
}

// build makes the program for a catalog: types, then statements. On an error it
// returns what there is of it, for its reads.
func (f *Function) build(cat *catalog.Catalog) (*program, error) {
	p := &program{fn: f, opts: f.opts, width: len(f.def.Args)}
	p.opts.Catalog = cat
	if f.format != nil {
		p.opts.Format = f.format(cat)
	}
	for i, v := range f.vars {
		info, err := p.variable(v, i)
		if err != nil {
			return p, f.typeError(v, err)
		}
		p.vars = append(p.vars, info)
	}
	p.initial = make([]datum.Datum, p.width)
	for i := range p.initial {
		p.initial[i] = datum.Null
	}
	p.initial[p.vars[f.found.id].at] = datum.Bool(false)
	p.arguments()
	b := builder{p: p}
	p.body = b.list([]stmt{f.body})
	return p, b.err
}

// typeError places an error about the type of a variable, as PostgreSQL does:
// at the name of a type, else only near the line.
func (f *Function) typeError(v *variable, err error) error {
	e, ok := pgerr.From(err)
	if !ok {
		return err
	}
	c := *e
	c.Position = 0
	if v.typ.kind == namedType {
		c.InternalQuery, c.InternalPosition = f.def.Body, parse.Position(f.def.Body, int32(v.typ.pos))
		return &c
	}
	return compileContext(f.def, v.lineNo, &c)
}

func (p *program) arguments() {
	def := p.fn.def
	for i := range def.Args {
		switch def.Args[i].Mode {
		case catalog.In, catalog.Variadic:
			p.inputs = append(p.inputs, input{i, p.vars[i]})
		case catalog.InOut:
			p.inputs = append(p.inputs, input{i, p.vars[i]})
			p.outs = append(p.outs, p.vars[i])
		default:
			p.outs = append(p.outs, p.vars[i])
		}
	}
	if len(p.outs) > 1 || len(p.outs) == 1 && def.Kind == catalog.Procedure {
		p.outRow = rowTypeOfOut(def)
		p.retRow = p.outRow
	}
	if isRow(def.Ret) && p.retRow == nil {
		p.retRow = rowTypeOfDesc(def.Ret.Desc)
	}
	p.endsWell = def.RetSet || len(p.outs) > 0 || def.Ret.Desc == datum.Void || def.Kind == catalog.Procedure
}

// input is where an argument of a call goes. The first places of frame.vars are
// those of the arguments, by number, so that $n is one of them; a row is spread
// over the fields of its record as well.
type input struct {
	at   int
	info *varInfo
}

// variable resolves the type of a variable, the i-th of the function, and gives
// it a place.
func (p *program) variable(v *variable, i int) (*varInfo, error) {
	info := &varInfo{v: v, rec: -1}
	if err := p.resolve(&v.typ, info); err != nil {
		return nil, err
	}
	if info.row == nil && info.typ.Desc != nil && isRow(info.typ) {
		info.row, info.typ = rowTypeOfDesc(info.typ.Desc), datum.Type{}
	}
	switch {
	case info.row != nil:
		info.rec, info.at = p.records, p.width
		p.width += len(info.row.types)
		p.fixed = append(p.fixed, info)
		p.records++
	case info.typ.Desc == nil:
		info.rec = p.records
		p.fixed = append(p.fixed, nil)
		p.records++
	case i < len(p.fn.def.Args):
		info.at = i
	default:
		info.at = p.width
		p.width++
	}
	return info, nil
}

// resolve finds out what a declared type is: info.typ, or info.row, or neither
// for RECORD.
func (p *program) resolve(t *typeRef, info *varInfo) error {
	switch t.kind {
	case givenType:
		info.typ = t.given
	case cursorType:
		info.typ = datum.T(datum.Text)
	case namedType:
		return p.resolveNamed(t, info)
	case rowOf:
		table, err := p.table(t.parts)
		if err != nil {
			return err
		}
		info.row = rowOfTable(table)
	case copyType:
		return p.resolveCopy(t, info)
	}
	return nil
}

func (p *program) resolveNamed(t *typeRef, info *varInfo) error {
	node, err := parse.Expression("NULL::" + t.text)
	if err != nil {
		return err
	}
	cast := node.GetTypeCast()
	if cast == nil {
		return pgerr.New(pgerr.SyntaxError, "invalid type name \"%s\"", t.text)
	}
	typ, reads, err := plan.FindType(cast.TypeName, p.opts.Catalog, p.opts.SearchPath)
	p.reads = append(p.reads, reads...)
	if err == nil {
		if typ.Kind == datum.Pseudo && typ.Desc != datum.Record {
			return pgerr.New(pgerr.FeatureNotSupported, "variable \"%s\" has pseudo-type %s", info.v.name, datum.FormatType(typ))
		}
		if typ.Desc != datum.Record {
			info.typ = typ
		}
		return nil
	}
	if pgerr.CodeOf(err) != pgerr.UndefinedObject || len(cast.TypeName.Typmods) > 0 || len(cast.TypeName.ArrayBounds) > 0 {
		return err
	}
	var parts []string
	for _, n := range cast.TypeName.Names {
		parts = append(parts, n.GetString_().GetSval())
	}
	table, terr := p.table(parts)
	if terr != nil {
		return err
	}
	info.row = rowOfTable(table)
	return nil
}

func (p *program) resolveCopy(t *typeRef, info *varInfo) error {
	if t.of == nil {
		n := len(t.parts) - 1
		table, err := p.table(t.parts[:n])
		if err != nil {
			return err
		}
		c := table.Column(t.parts[n])
		if c < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", t.parts[n], table.Name)
		}
		info.typ = table.Columns[c].Type
		return nil
	}
	of := p.vars[t.of.id]
	if t.field == "" {
		info.typ, info.row = of.typ, of.row
		return nil
	}
	if of.row == nil || of.row.field(t.field) < 0 {
		return pgerr.New(pgerr.UndefinedColumn, "record \"%s\" has no field \"%s\"", t.of.name, t.field)
	}
	info.typ = of.row.types[of.row.field(t.field)]
	return nil
}

// table finds a table by name and notes what was looked up as read.
func (p *program) table(parts []string) (*catalog.Table, error) {
	schemas := p.opts.SearchPath
	if len(parts) > 1 {
		schemas = parts[:1]
	}
	nameOf := parts[len(parts)-1]
	if p.opts.Catalog != nil && len(parts) <= 2 {
		for _, s := range schemas {
			if t, ok := p.opts.Catalog.Table(s, nameOf); ok {
				p.reads = append(p.reads, t.Reads()...)
				return t, nil
			}
			p.reads = append(p.reads, catalog.MissingTable(s, nameOf)...)
		}
	}
	return nil, pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", strings.Join(parts, "."))
}

// castsNull tells that a cast is to a domain.
func (p *program) castsNull(x *exec.ExprProgram) bool {
	_, ok := p.domains.Load(x)
	return ok
}

func rowOfTable(t *catalog.Table) *rowType {
	if t.Row != nil {
		return rowTypeOfDesc(t.Row)
	}
	var names []string
	var types []datum.Type
	for i := range t.Columns {
		if c := &t.Columns[i]; !c.Dropped {
			names, types = append(names, c.Name), append(types, c.Type)
		}
	}
	return newRowType(names, types)
}

type castKey struct {
	from, to       datum.OID
	fromMod, toMod int32
}

// cast finds the conversion that an assignment of a value of one type to a
// variable of another needs; nil if there is nothing to do. PL/pgSQL converts
// through the text forms where no cast for assignments exists.
func (p *program) cast(from, to datum.Type) (*exec.ExprProgram, error) {
	if from.Same(to) && (to.Mod < 0 || from.Mod == to.Mod) || to.Desc == nil {
		return nil, nil
	}
	k := castKey{from.OID, to.OID, from.Mod, to.Mod}
	if x, ok := p.casts.Load(k); ok {
		return x.(*exec.ExprProgram), nil
	}
	opts := plan.Options{Params: []datum.Type{from}, Format: p.opts.Format, Contract: p.opts.Contract,
		Catalog: p.opts.Catalog, SearchPath: p.opts.SearchPath}
	ep, err := plan.ExpressionText("$1", to, &opts)
	if err != nil && noCast(err) {
		ep, err = plan.ExpressionText("$1::text::"+datum.FormatType(to), to, &opts)
	}
	if err != nil {
		return nil, err
	}
	x, err := exec.CompileExpr(ep.Expr, ep.Slots, ep.Subqueries, ep.CTEs)
	if err != nil {
		return nil, err
	}
	if to.Kind == datum.Domain {
		p.domains.Store(x, true)
	}
	p.casts.Store(k, x)
	return x, nil
}

// noCast recognizes the planner's report that no cast exists.
func noCast(err error) bool {
	code := pgerr.CodeOf(err)
	return code == pgerr.CannotCoerce || code == pgerr.DatatypeMismatch
}

// convert applies a cast.
func (fr *frame) convert(x *exec.ExprProgram, d datum.Datum) (datum.Datum, error) {
	if x == nil || d.IsNull() && !fr.p.castsNull(x) {
		return d, nil
	}
	fr.one[0] = d
	return x.Eval(fr.env, fr.one[:])
}

// convertType converts a value from one type to another.
func (fr *frame) convertType(d datum.Datum, from, to datum.Type) (datum.Datum, error) {
	x, err := fr.p.cast(from, to)
	if err != nil {
		return datum.Null, err
	}
	return fr.convert(x, d)
}
