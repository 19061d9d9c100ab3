package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Assignments to a part of a column - SET a[1] = x, c.f = x, INSERT INTO t
// (a[1], c.f) - become expressions that make the whole column anew from its old
// value, or from null. They nest as the path does: c.f[2] = x is c with the field
// f being c.f with the element 2 being x (transformAssignmentIndirection in
// parse_target.c). Several parts of one column are assigned one after another.

// SetElement is Base with one element or a slice replaced: of an array (Index, or
// Lo and Hi with nil entries for omitted bounds) or of a jsonb value, whose Index
// holds int4 and text expressions.
type SetElement struct {
	typed
	Base   Expr
	Index  []Expr
	Slice  bool
	Lo, Hi []Expr
	Value  Expr
}

// SetField is Base, of a composite type, with the field Index replaced.
type SetField struct {
	typed
	Base  Expr
	Index int
	Value Expr
}

// partOf is a target of an assignment that is a part of a column.
type partOf struct {
	col   *catalog.Column
	steps []*pg.Node
	loc   int32
}

// leafType is the type of what is assigned.
func (p *planner) leafType(t datum.Type, steps []*pg.Node, part *partOf) (datum.Type, error) {
	for len(steps) > 0 {
		root := t.Root()
		if steps[0].GetAIndices() == nil {
			i, err := p.partField(root, steps[0], part)
			if err != nil {
				return t, err
			}
			t, steps = root.Fields[i].Type, steps[1:]
			continue
		}
		n := subscriptCount(steps)
		switch {
		case root.Desc == datum.JSONB:
			t = root
		case root.Elem == nil:
			return t, p.errAt(part.loc, pgerr.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", datum.FormatType(root))
		case hasSlice(steps[:n]):
			t = root
		default:
			t = datum.Type{Desc: root.Elem, Mod: root.Mod}
		}
		steps = steps[n:]
	}
	return t, nil
}

func subscriptCount(steps []*pg.Node) int {
	n := 0
	for n < len(steps) && steps[n].GetAIndices() != nil {
		n++
	}
	return n
}

func hasSlice(subs []*pg.Node) bool {
	for _, s := range subs {
		if s.GetAIndices().IsSlice {
			return true
		}
	}
	return false
}

func (p *planner) partField(t datum.Type, step *pg.Node, part *partOf) (int, error) {
	name := step.GetString_().GetSval()
	if step.GetString_() == nil {
		return 0, p.errAt(part.loc, pgerr.FeatureNotSupported, "row expansion via \"*\" is not supported here")
	}
	if t.Kind != datum.Composite {
		return 0, p.errAt(part.loc, pgerr.DatatypeMismatch, "cannot assign to field \"%s\" of column \"%s\" because its type %s is not a composite type",
			name, part.col.Name, datum.FormatType(t))
	}
	for i, f := range t.Fields {
		if f.Name == name {
			return i, nil
		}
	}
	return 0, p.errAt(part.loc, pgerr.UndefinedColumn, "cannot assign to field \"%s\" of column \"%s\" because there is no such column in data type %s",
		name, part.col.Name, datum.FormatType(t))
}

// setPart is base with the part that steps name replaced by value, which has the
// type of the part.
func (p *planner) setPart(base Expr, steps []*pg.Node, value Expr, s *scope, part *partOf) (Expr, error) {
	if len(steps) == 0 {
		return value, nil
	}
	t := base.Type()
	root := t.Root()
	var out Expr
	if steps[0].GetAIndices() == nil {
		i, err := p.partField(root, steps[0], part)
		if err != nil {
			return nil, err
		}
		inner, err := p.setPart(&Field{typed{root.Fields[i].Type}, base, i}, steps[1:], value, s, part)
		if err != nil {
			return nil, err
		}
		out = &SetField{typed{root}, base, i, inner}
	} else {
		n := subscriptCount(steps)
		set, err := p.setElement(base, root, steps[:n], s, part)
		if err != nil {
			return nil, err
		}
		if n == len(steps) {
			set.Value = value
		} else {
			old := &Subscript{typed: typed{datum.Type{Desc: root.Elem, Mod: root.Mod}}, Array: base, Index: set.Index}
			if set.Value, err = p.setPart(old, steps[n:], value, s, part); err != nil {
				return nil, err
			}
		}
		out = set
	}
	if t.Kind == datum.Domain {
		return p.coerceDomain(out, t, builtin.Assignment, part.loc)
	}
	return out, nil
}

// setElement analyzes the subscripts of an assignment.
func (p *planner) setElement(base Expr, root datum.Type, subs []*pg.Node, s *scope, part *partOf) (*SetElement, error) {
	set := &SetElement{typed: typed{root}, Base: base, Slice: hasSlice(subs)}
	if root.Desc == datum.JSONB {
		if set.Slice {
			return nil, p.errAt(part.loc, pgerr.DatatypeMismatch, "jsonb subscript does not support slices")
		}
		for _, sub := range subs {
			k, err := p.expr(sub.GetAIndices().Uidx, s, "a subscript")
			if err != nil {
				return nil, err
			}
			if k, err = p.jsonKey(k, location(sub.GetAIndices().Uidx)); err != nil {
				return nil, err
			}
			set.Index = append(set.Index, k)
		}
		return set, nil
	}
	read, err := p.subscript(&Slot{typed: typed{root}}, subs, s, "a subscript", part.loc)
	if err != nil {
		return nil, err
	}
	sub, ok := read.(*Subscript)
	if !ok {
		return nil, p.errAt(part.loc, pgerr.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", datum.FormatType(root))
	}
	set.Index, set.Lo, set.Hi = sub.Index, sub.Lo, sub.Hi
	return set, nil
}

// jsonKey brings a subscript of jsonb to int4 or text (jsonb_subscript_transform).
func (p *planner) jsonKey(k Expr, loc int32) (Expr, error) {
	from := k.Type()
	to := datum.Text
	if from.Desc != datum.Unknown && !from.Same(datum.T(datum.Text)) && builtin.CanCoerce(from.Desc, datum.Int4, builtin.Implicit) {
		to = datum.Int4
	} else if !builtin.CanCoerce(from.Desc, datum.Text, builtin.Implicit) {
		return nil, p.errAt(loc, pgerr.DatatypeMismatch, "subscript type %s is not supported", datum.FormatType(from)).
			WithHint("jsonb subscript must be coercible to either integer or text.")
	}
	return p.coerce(k, datum.T(to), builtin.Implicit, loc)
}

// insertPart notes that target number i of an INSERT is a part of a column.
func (p *planner) insertPart(i int, part *partOf) {
	if p.parts == nil {
		p.parts = map[int]*partOf{}
	}
	p.parts[i] = part
}

// targetColumn is the column that target number i of an INSERT assigns; for a
// part, a column of the part's type.
func (p *planner) targetColumn(t *catalog.Table, into []int, i int) (*catalog.Column, error) {
	col := &t.Columns[into[i]]
	part := p.parts[i]
	if part == nil {
		return col, nil
	}
	leaf, err := p.leafType(col.Type, part.steps, part)
	if err != nil {
		return nil, err
	}
	c := *col
	c.Type, c.TypeOID, c.TypMod = leaf, leaf.OID, leaf.Mod
	return &c, nil
}

// partCell analyzes one value for target number i of an INSERT.
func (p *planner) partCell(n *pg.Node, t *catalog.Table, into []int, i int, s *scope) (Expr, error) {
	col, err := p.targetColumn(t, into, i)
	if err != nil {
		return nil, err
	}
	if part := p.parts[i]; part != nil && n.GetSetToDefault() != nil {
		return nil, p.partDefault(part.steps, part.loc)
	}
	return p.cell(n, col, s)
}

// insertedPart is the new value of a column to which target number i of an
// INSERT assigns v: old, or null at first, with the part replaced.
func (p *planner) insertedPart(old Expr, i int, v Expr, s *scope) (Expr, error) {
	part := p.parts[i]
	if part == nil {
		return v, nil
	}
	if old == nil {
		old = NewConst(part.col.Type, datum.Null)
	}
	return p.setPart(old, part.steps, v, s, part)
}

// updatePart is the new value of a column of which SET assigns a part.
func (p *planner) updatePart(rt *pg.ResTarget, col *catalog.Column, place int, base Expr, s *scope) (Expr, error) {
	part := &partOf{col, rt.Indirection, rt.Location}
	leaf, err := p.leafType(col.Type, rt.Indirection, part)
	if err != nil {
		return nil, err
	}
	if rt.Val.GetSetToDefault() != nil {
		return nil, p.partDefault(rt.Indirection, rt.Location)
	}
	c := *col
	c.Type, c.TypeOID, c.TypMod = leaf, leaf.OID, leaf.Mod
	v, err := p.assignedValue(rt, &c, place, s)
	if err != nil {
		return nil, err
	}
	return p.setPart(base, rt.Indirection, v, s, part)
}

func (p *planner) partDefault(steps []*pg.Node, loc int32) error {
	what := "a subfield"
	if steps[0].GetAIndices() != nil {
		what = "an array element"
	}
	return p.errAt(loc, pgerr.FeatureNotSupported, "cannot set %s to DEFAULT", what)
}
