package sql

import (
	"math"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// serialType reads the pseudo-types of serial columns.
func (def *tableDef) serialType(tn *pg.TypeName) (datum.Type, bool, error) {
	if def.d.local == nil || len(tn.Names) != 1 {
		return datum.Type{}, false, nil
	}
	var d *datum.Desc
	switch tn.Names[0].GetString_().GetSval() {
	case "smallserial", "serial2":
		d = datum.Int2
	case "serial", "serial4":
		d = datum.Int4
	case "bigserial", "serial8":
		d = datum.Int8
	default:
		return datum.Type{}, false, nil
	}
	if len(tn.ArrayBounds) > 0 {
		return datum.Type{}, false, pgerr.New(pgerr.FeatureNotSupported, "array of serial is not implemented")
	}
	return datum.T(d), true, nil
}

// identity makes a column GENERATED ... AS IDENTITY.
func (def *tableDef) identity(c *pg.Constraint, column string) error {
	col := &def.table.Columns[def.table.Column(column)]
	if col.Identity != "" {
		return pgerr.New(pgerr.SyntaxError, "multiple identity specifications for column \"%s\" of table \"%s\"", column, def.table.Name)
	}
	if col.Default != "" || col.Sequence != 0 {
		return pgerr.New(pgerr.SyntaxError, "both default and identity specified for column \"%s\" of table \"%s\"", column, def.table.Name)
	}
	switch col.Type.Desc {
	case datum.Int2, datum.Int4, datum.Int8:
	default:
		return pgerr.New(pgerr.InvalidParameterValue, "identity column type must be smallint, integer, or bigint")
	}
	col.Identity = c.GeneratedWhen
	return def.ownSequence(column, c.Options)
}

// ownSequence makes the sequence of a serial or identity column. It is stored
// with the table.
func (def *tableDef) ownSequence(column string, options []*pg.Node) error {
	t, d := def.table, def.d
	i := t.Column(column)
	col := &t.Columns[i]
	q, err := d.newSequence(t.Schema, d.freeName(t.Schema, []string{t.Name, column, "seq"}), col.Type.Desc, options)
	if err != nil {
		return err
	}
	for _, o := range def.sequences {
		if o.Name == q.Name {
			q.Name += "1"
		}
	}
	q.Sequence.OwnerTable, q.Sequence.OwnerColumn = t.OID, i
	col.NotNull, col.Sequence = true, q.OID
	def.sequences = append(def.sequences, q)
	return nil
}

// sequenceColumns are what SELECT shows of a sequence.
func sequenceColumns() []catalog.Column {
	column := func(name string, d *datum.Desc) catalog.Column {
		return catalog.Column{Name: name, TypeOID: d.OID, TypMod: -1, NotNull: true, Type: datum.T(d)}
	}
	return []catalog.Column{column("last_value", datum.Int8), column("log_cnt", datum.Int8), column("is_called", datum.BoolType)}
}

// newSequence makes the descriptor of a sequence of a type.
func (d *definer) newSequence(schema, name string, typ *datum.Desc, options []*pg.Node) (*catalog.Table, error) {
	oid, err := d.editor.NextOID()
	if err != nil {
		return nil, err
	}
	q := &catalog.Table{OID: oid, Schema: schema, Name: name, Kind: catalog.Sequence, Owner: d.owner, Columns: sequenceColumns(),
		Sequence: &catalog.SequenceDef{TypeOID: typ.OID, Increment: 1, Cache: 1, StateOID: oid}}
	return q, d.sequenceOptions(q, options, true)
}

func typeRange(oid catalog.OID) (lo, hi int64) {
	switch oid {
	case datum.Int2.OID:
		return math.MinInt16, math.MaxInt16
	case datum.Int4.OID:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

// sequenceOptions applies the options of CREATE and ALTER SEQUENCE
// (init_params).
func (d *definer) sequenceOptions(q *catalog.Table, options []*pg.Node, fresh bool) error {
	def := q.Sequence
	given := map[string]*pg.DefElem{}
	for _, o := range options {
		e := o.GetDefElem()
		if given[e.Defname] != nil {
			return pgerr.New(pgerr.SyntaxError, "conflicting or redundant options")
		}
		given[e.Defname] = e
	}
	number := func(name string, into *int64) (bool, error) {
		e := given[name]
		if e == nil || e.Arg == nil {
			return false, nil
		}
		v, err := optionNumber(e)
		if err == nil {
			*into = v
		}
		return err == nil, err
	}
	resetMin, resetMax := fresh, fresh
	if e := given["as"]; e != nil {
		t, err := plan.ResolveType(e.Arg.GetTypeName())
		if err != nil {
			return err
		}
		switch t.Desc {
		case datum.Int2, datum.Int4, datum.Int8:
		default:
			return pgerr.New(pgerr.InvalidParameterValue, "sequence type must be smallint, integer, or bigint")
		}
		lo, hi := typeRange(def.TypeOID)
		resetMin, resetMax = resetMin || def.Min == lo, resetMax || def.Max == hi
		def.TypeOID = t.OID
	}
	if _, err := number("increment", &def.Increment); err != nil {
		return err
	}
	if def.Increment == 0 {
		return pgerr.New(pgerr.InvalidParameterValue, "INCREMENT must not be zero")
	}
	if e := given["cycle"]; e != nil {
		def.Cycle = e.Arg.GetBoolean().GetBoolval()
	}
	lo, hi := typeRange(def.TypeOID)
	if ok, err := number("maxvalue", &def.Max); err != nil {
		return err
	} else if !ok && (resetMax || given["maxvalue"] != nil) {
		if def.Max = hi; def.Increment < 0 {
			def.Max = -1
		}
	}
	if ok, err := number("minvalue", &def.Min); err != nil {
		return err
	} else if !ok && (resetMin || given["minvalue"] != nil) {
		if def.Min = 1; def.Increment < 0 {
			def.Min = lo
		}
	}
	name := datum.FormatType(datum.T(datum.ByOID(def.TypeOID)))
	switch {
	case def.Max < lo || def.Max > hi:
		return pgerr.New(pgerr.InvalidParameterValue, "MAXVALUE (%d) is out of range for sequence data type %s", def.Max, name)
	case def.Min < lo || def.Min > hi:
		return pgerr.New(pgerr.InvalidParameterValue, "MINVALUE (%d) is out of range for sequence data type %s", def.Min, name)
	case def.Min >= def.Max:
		return pgerr.New(pgerr.InvalidParameterValue, "MINVALUE (%d) must be less than MAXVALUE (%d)", def.Min, def.Max)
	}
	if ok, err := number("start", &def.Start); err != nil {
		return err
	} else if !ok && fresh {
		if def.Start = def.Min; def.Increment < 0 {
			def.Start = def.Max
		}
	}
	switch {
	case def.Start < def.Min:
		return pgerr.New(pgerr.InvalidParameterValue, "START value (%d) cannot be less than MINVALUE (%d)", def.Start, def.Min)
	case def.Start > def.Max:
		return pgerr.New(pgerr.InvalidParameterValue, "START value (%d) cannot be greater than MAXVALUE (%d)", def.Start, def.Max)
	}
	if _, err := number("cache", &def.Cache); err != nil {
		return err
	}
	if def.Cache <= 0 {
		return pgerr.New(pgerr.InvalidParameterValue, "CACHE (%d) must be greater than zero", def.Cache)
	}
	if fresh {
		def.Initial = def.Start
	}
	if e := given["restart"]; e != nil {
		to := def.Start
		if _, err := number("restart", &to); err != nil {
			return err
		}
		switch {
		case to < def.Min:
			return pgerr.New(pgerr.InvalidParameterValue, "RESTART value (%d) cannot be less than MINVALUE (%d)", to, def.Min)
		case to > def.Max:
			return pgerr.New(pgerr.InvalidParameterValue, "RESTART value (%d) cannot be greater than MAXVALUE (%d)", to, def.Max)
		}
		if err := d.newState(def, to); err != nil {
			return err
		}
	}
	if e := given["owned_by"]; e != nil {
		return d.ownedBy(q, e)
	}
	return nil
}

func optionNumber(e *pg.DefElem) (int64, error) {
	switch a := e.Arg.Node.(type) {
	case *pg.Node_Integer:
		return int64(a.Integer.Ival), nil
	case *pg.Node_Float:
		v, err := strconv.ParseInt(a.Float.Fval, 10, 64)
		if err != nil {
			return 0, pgerr.New(pgerr.NumericValueOutOfRange, "value \"%s\" is out of range for type bigint", a.Float.Fval)
		}
		return v, nil
	}
	return 0, pgerr.New(pgerr.SyntaxError, "%s requires a numeric value", e.Defname)
}

// newState gives a sequence a fresh state, so that restarting it is undone with
// the transaction.
func (d *definer) newState(def *catalog.SequenceDef, next int64) error {
	oid, err := d.editor.NextOID()
	def.StateOID, def.Initial = oid, next
	return err
}

// ownedBy is OWNED BY.
func (d *definer) ownedBy(q *catalog.Table, e *pg.DefElem) error {
	parts, err := stringList(e.Arg.GetList().GetItems())
	if err != nil {
		return err
	}
	if len(parts) == 1 && parts[0] == "none" {
		q.Sequence.OwnerTable, q.Sequence.OwnerColumn = 0, 0
		return nil
	}
	if len(parts) < 2 {
		return pgerr.New(pgerr.SyntaxError, "invalid OWNED BY option").WithHint("Specify OWNED BY table.column or OWNED BY NONE.")
	}
	v := &pg.RangeVar{Relname: parts[len(parts)-2]}
	if len(parts) > 2 {
		v.Schemaname = parts[len(parts)-3]
	}
	t, err := d.findTable(v)
	if err != nil {
		return err
	}
	column := parts[len(parts)-1]
	i := t.Column(column)
	if i < 0 {
		return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", column, t.Name)
	}
	q.Sequence.OwnerTable, q.Sequence.OwnerColumn = t.OID, i
	return nil
}

func (d *definer) createSequence(n *pg.CreateSeqStmt) error {
	schema, err := d.placeOf(n.Sequence)
	if err != nil {
		return err
	}
	name := n.Sequence.Relname
	if err := d.relationFree(schema, name); err != nil {
		if n.IfNotExists {
			d.say(pgerr.DuplicateTable, "relation \"%s\" already exists, skipping", name)
			return nil
		}
		return err
	}
	q, err := d.newSequence(schema, name, datum.Int8, n.Options)
	if err != nil {
		return err
	}
	return d.editor.PutTable(q)
}

// findSequence finds the sequence that a statement names.
func (d *definer) findSequence(v *pg.RangeVar) (*catalog.Table, error) {
	t, err := d.findTable(v)
	if err == nil && t.Kind != catalog.Sequence {
		err = pgerr.New(pgerr.WrongObjectType, "\"%s\" is not a sequence", t.Name)
	}
	return t, err
}

func (d *definer) alterSequence(n *pg.AlterSeqStmt) error {
	t, err := d.findSequence(n.Sequence)
	if err != nil {
		if n.MissingOk && pgerr.CodeOf(err) == pgerr.UndefinedTable {
			d.say(pgerr.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", n.Sequence.Relname)
			return nil
		}
		return err
	}
	q := copySequence(t)
	last, called, err := d.engine.private.sequences.peek(t.Sequence)
	if err != nil {
		return err
	}
	if err := d.sequenceOptions(q, n.Options, false); err != nil {
		return err
	}
	if def := q.Sequence; def.StateOID == t.Sequence.StateOID && (last < def.Min || last > def.Max) && called {
		word, limit := "less than MINVALUE", def.Min
		if last > def.Max {
			word, limit = "greater than MAXVALUE", def.Max
		}
		return pgerr.New(pgerr.InvalidParameterValue, "RESTART value (%d) cannot be %s (%d)", last, word, limit)
	}
	return d.editor.PutTable(q)
}

func copySequence(t *catalog.Table) *catalog.Table {
	q, def := *t, *t.Sequence
	q.Sequence = &def
	return &q
}

// restart makes next the next number of a sequence.
func (d *definer) restart(t *catalog.Table, next int64) error {
	q := copySequence(t)
	if err := d.newState(q.Sequence, next); err != nil {
		return err
	}
	return d.editor.PutTable(q)
}

// ownedSequences are those that go with a table.
func (d *definer) ownedSequences(t *catalog.Table) []*catalog.Table {
	var list []*catalog.Table
	for _, q := range d.catalog().Tables() {
		if q.Kind == catalog.Sequence && q.Sequence.OwnerTable == t.OID {
			list = append(list, q)
		}
	}
	return list
}

// dropOwned drops the sequences of a table, or of one column if i >= 0.
func (d *definer) dropOwned(t *catalog.Table, i int) error {
	for _, q := range d.ownedSequences(t) {
		if i < 0 || q.Sequence.OwnerColumn == i {
			if err := d.editor.DropTable(q); err != nil {
				return err
			}
		}
	}
	return nil
}

// usedSequence refuses to drop a sequence that a column draws from.
func (d *definer) usedSequence(q *catalog.Table, behavior pg.DropBehavior) error {
	for _, t := range d.catalog().Tables() {
		for i := range t.Columns {
			col := &t.Columns[i]
			if col.Dropped || col.Sequence != q.OID && !drawsFrom(col.Default, q) {
				continue
			}
			if col.Identity != "" {
				return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop sequence %s because column %s of table %s requires it", q.Name, col.Name, t.Name).
					WithHint("You can drop column %s of table %s instead.", col.Name, t.Name)
			}
			if behavior != pg.DropBehavior_DROP_CASCADE {
				return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop sequence %s because other objects depend on it", q.Name).
					WithDetail("default value for column %s of table %s depends on sequence %s", col.Name, t.Name, q.Name).
					WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
			}
			next := copyTable(t)
			next.Columns[i].Sequence, next.Columns[i].Default = 0, ""
			if err := d.editor.PutTable(next); err != nil {
				return err
			}
		}
	}
	return nil
}

// drawsFrom tells that a default is a call of nextval that names a sequence.
func drawsFrom(expr string, q *catalog.Table) bool {
	if !strings.Contains(expr, "nextval") {
		return false
	}
	node, err := parse.Expression(expr)
	if err != nil {
		return false
	}
	call := node.GetFuncCall()
	if call == nil || len(call.Args) != 1 {
		return false
	}
	arg := call.Args[0]
	if c := arg.GetTypeCast(); c != nil {
		arg = c.Arg
	}
	name := arg.GetAConst().GetSval().GetSval()
	name = strings.TrimPrefix(name, q.Schema+".")
	return name == q.Name || name == datum.QuoteIdent(q.Name)
}
