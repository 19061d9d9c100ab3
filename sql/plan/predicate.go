package plan

import (
	"github.com/tallystick/tallystick/sql/datum"
)

// prover shows that a condition follows from others, by the simple rules of
// PostgreSQL's predtest.c: equal conditions, ANDs and ORs of them, comparisons of
// the same value with constants, and IS NOT NULL from a strict condition. What it
// cannot show may be true all the same.
//
// Conditions to be shown are over the columns of a row as parameters, known ones
// over the slots of a FROM item. A value is meant by its fingerprint.
type prover struct {
	p *planner
	r *rel
}

// implied tells that a predicate over the row of r is true wherever conds are.
func (p *planner) implied(pred Expr, conds []Expr, r *rel) bool {
	v := prover{p, r}
	var known []Expr
	for _, c := range conds {
		if p.refersTo(c, r) && p.known(c, []*rel{r}) && !hasVolatile(c) {
			known = append(known, c)
		}
	}
	for _, want := range conjuncts(pred) {
		if !v.follows(want, known) {
			return false
		}
	}
	return true
}

// follows tells that want follows from one of the known conditions, or one arm
// of it does.
func (v *prover) follows(want Expr, known []Expr) bool {
	if b, ok := want.(*BoolOp); ok && b.Op != Not {
		for _, arm := range b.Args {
			if v.follows(arm, known) == (b.Op == Or) {
				return b.Op == Or
			}
		}
		if b.Op == And {
			return true
		}
	}
	for _, c := range known {
		if v.proves(c, want) {
			return true
		}
	}
	return false
}

// proves tells that want follows from one condition.
func (v *prover) proves(c, want Expr) bool {
	if b, ok := c.(*BoolOp); ok && b.Op != Not {
		for _, arm := range b.Args {
			if v.proves(arm, want) == (b.Op == And) {
				return b.Op == And
			}
		}
		return b.Op == Or
	}
	if b, ok := want.(*BoolOp); ok && b.Op != Not {
		for _, arm := range b.Args {
			if v.proves(c, arm) == (b.Op == Or) {
				return b.Op == Or
			}
		}
		return b.Op == And
	}
	return v.print(c) == rowPrint(want) || v.truth(c, want) || v.notNull(c, want) || v.compared(c, want)
}

func (v *prover) print(e Expr) string { return string(v.p.rowPrint(unlabelled(e), v.r)) }

func rowPrint(e Expr) string { return string((&printer{row: true}).print(nil, unlabelled(e))) }

// truth compares what is said about a boolean value.
func (v *prover) truth(c, want Expr) bool {
	a, is := booleanValue(c)
	b, needed := booleanValue(want)
	return a != nil && b != nil && is == needed && v.print(a) == rowPrint(b)
}

// booleanValue reads b, NOT b, b = true, b IS TRUE and so on: the value and
// whether it is said to be true.
func booleanValue(e Expr) (Expr, bool) {
	switch e := e.(type) {
	case *Slot, *Param:
		if e.Type().Desc == datum.BoolType {
			return e, true
		}
	case *BoolOp:
		if e.Op == Not {
			v, is := booleanValue(e.Args[0])
			return v, !is
		}
	case *BoolTest:
		if !e.Not && !e.Want.IsNull() {
			if v, is := booleanValue(e.Arg); v != nil && is {
				return v, e.Want.Bool()
			}
		}
	case *Call:
		if len(e.Args) == 2 && e.Args[0].Type().Desc == datum.BoolType && comparisonOps[e.Func.OID] == "=" {
			if k, ok := e.Args[1].(*Const); ok && !k.Value.IsNull() {
				v, is := booleanValue(e.Args[0])
				return v, is == k.Value.Bool()
			}
		}
	}
	return nil, false
}

// notNull proves IS NOT NULL from a condition that is not true for null.
func (v *prover) notNull(c, want Expr) bool {
	n, ok := want.(*IsNull)
	return ok && n.Not && v.strictIn(c, rowPrint(n.Arg))
}

// strictIn tells that e is null, or not true, where a value is null.
func (v *prover) strictIn(e Expr, value string) bool {
	if v.print(e) == value {
		return true
	}
	switch e := e.(type) {
	case *Call:
		if !e.Func.Strict {
			return false
		}
		for _, a := range e.Args {
			if v.strictIn(a, value) {
				return true
			}
		}
	case *AnyAll:
		return !e.All && v.strictIn(e.Left, value)
	case *BoolOp:
		return e.Op == Not && v.strictIn(e.Args[0], value)
	case *IsNull:
		return e.Not && v.strictIn(e.Arg, value)
	case *BoolTest:
		return !e.Not && !e.Want.IsNull() && v.strictIn(e.Arg, value)
	case *Relabel:
		return v.strictIn(e.Arg, value)
	case *CoerceIO:
		return v.strictIn(e.Arg, value)
	}
	return false
}

// bounded is a comparison of a value with constants, of which one holds.
type bounded struct {
	value  Expr
	op     string // = <> < <= > >=
	consts []datum.Datum
	typ    datum.Type
}

func boundedBy(e Expr) (b bounded, ok bool) {
	switch e := e.(type) {
	case *Call:
		op := operatorOf[e.Func.OID]
		if op == nil || len(e.Args) != 2 || !sameKey(e.Args[0].Type(), e.Args[1].Type()) {
			return b, false
		}
		b = bounded{value: e.Args[0], op: op.Name, typ: e.Args[0].Type()}
		k, isConst := e.Args[1].(*Const)
		if !isConst {
			if k, isConst = e.Args[0].(*Const); !isConst {
				return b, false
			}
			b.value, b.typ = e.Args[1], e.Args[1].Type()
			if m, found := mirrored[op.Name]; found {
				b.op = m
			}
		}
		b.consts = []datum.Datum{k.Value}
	case *AnyAll:
		if e.All || !e.Equality {
			return b, false
		}
		b = bounded{value: e.Left, op: "=", typ: e.Left.Type()}
		switch a := e.Array.(type) {
		case *Const:
			if a.Value.IsNull() || a.Type().Elem == nil || !sameKey(datum.T(a.Type().Elem), b.typ) {
				return b, false
			}
			for d := range datum.ArrayElems(a.Value) {
				b.consts = append(b.consts, d)
			}
		case *ArrayExpr:
			for _, x := range a.Args {
				k, isConst := x.(*Const)
				if !isConst || !sameKey(k.Type(), b.typ) {
					return b, false
				}
				b.consts = append(b.consts, k.Value)
			}
		}
	default:
		return b, false
	}
	return b, b.typ.Compare != nil && len(b.consts) > 0
}

// compared proves a comparison with constants from another one of the same value:
// each of the constants known must make it true.
func (v *prover) compared(c, want Expr) bool {
	have, ok := boundedBy(c)
	if !ok {
		return false
	}
	need, ok := boundedBy(want)
	if !ok || !sameKey(have.typ, need.typ) || v.print(have.value) != rowPrint(need.value) {
		return false
	}
	for _, a := range have.consts {
		if a.IsNull() {
			continue // a comparison with null holds for no row
		}
		held := false
		for _, b := range need.consts {
			held = held || !b.IsNull() && follows(have.op, need.op, have.typ.Compare(a, b))
		}
		if !held {
			return false
		}
	}
	return true
}

// follows tells that x op a implies x need b, for a compared with b.
func follows(op, need string, cmp int) bool {
	below, above := cmp < 0, cmp > 0
	switch op {
	case "=":
		switch need {
		case "=":
			return cmp == 0
		case "<>":
			return cmp != 0
		case "<":
			return below
		case "<=":
			return !above
		case ">":
			return above
		case ">=":
			return !below
		}
	case "<":
		return !above && (need == "<" || need == "<=" || need == "<>")
	case "<=":
		return below && (need == "<" || need == "<>") || !above && need == "<="
	case ">":
		return !below && (need == ">" || need == ">=" || need == "<>")
	case ">=":
		return above && (need == ">" || need == "<>") || !below && need == ">="
	case "<>":
		return need == "<>" && cmp == 0
	}
	return false
}
