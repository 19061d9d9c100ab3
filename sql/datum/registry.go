package datum

import (
	"cmp"
	"slices"
)

var (
	builtins []*Desc
	byOID    map[OID]*Desc
	byName   map[string]*Desc
)

func init() {
	for _, d := range baseTypes {
		setFunctions(d)
	}
	setFunctions(JSONPathType)
	Int2Vector.Elem, OIDVector.Elem = Int2, OIDType
	builtins = slices.Clone(baseTypes)
	for _, a := range arrayOIDs {
		builtins = append(builtins, NewArrayDesc(a.elem, a.oid))
	}
	builtins = append(builtins, JSONPathType, NewArrayDesc(JSONPathType, JSONPathArrayOID))
	for _, r := range rangeTypes {
		setRangeFunctions(r.typ)
		setMultirangeFunctions(r.typ.Multi)
		builtins = append(builtins, r.typ, NewArrayDesc(r.typ, r.array), r.typ.Multi, NewArrayDesc(r.typ.Multi, r.multiArray))
	}
	Record.Array.Kind, Record.Array.Category = Pseudo, 'P'
	slices.SortFunc(builtins, func(a, b *Desc) int { return cmp.Compare(a.OID, b.OID) })
	byOID = make(map[OID]*Desc, len(builtins))
	byName = make(map[string]*Desc, len(builtins))
	for _, d := range builtins {
		byOID[d.OID], byName[d.Name] = d, d
	}
}

// ByOID returns the built-in type with an OID, nil if there is none.
func ByOID(oid OID) *Desc { return byOID[oid] }

// ByName returns the built-in type with a pg_type.typname ("int4", "_text"),
// nil if there is none. SQL's own spellings ("integer") are the parser's.
func ByName(name string) *Desc { return byName[name] }

// Builtins lists the built-in types in OID order; the caller must not change
// the list.
func Builtins() []*Desc { return builtins }

// IsArray reports whether t is a true array type: not int2vector or oidvector,
// which have elements too.
func (t *Desc) IsArray() bool { return t != nil && t.Elem != nil && t.Elem.Array == t }

// StoredAs is a built-in type whose values are stored as those of t: what is
// left of a dropped column of a type that may be dropped as well.
func (t *Desc) StoredAs() *Desc {
	switch r := T(t).Root(); {
	case ByOID(r.OID) != nil:
		return r.Desc
	case r.Kind == Enum:
		return Float4
	}
	return Bytea
}

// Root follows domains down to the type that holds the value, with the
// modifier that the last domain gives.
func (t Type) Root() Type {
	for t.Desc != nil && t.Kind == Domain {
		t = t.Base
	}
	return t
}
