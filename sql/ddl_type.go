package sql

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// resolveType finds a type by the names that the script sees, and places an
// error at its name.
func (d *definer) resolveType(tn *pg.TypeName, st parse.Statement) (datum.Type, error) {
	t, _, err := plan.FindType(tn, d.catalog(), d.searchIn(""))
	if err != nil {
		return t, positioned(err, st, tn.Location)
	}
	return t, nil
}

// typeFree refuses the name of a type or of a relation, whose rows have a type
// of its name.
func (d *definer) typeFree(schema, name string) error {
	if found, _ := d.catalog().FindType(schema, name); found != nil {
		return pgerr.New(pgerr.DuplicateObject, "type \"%s\" already exists", name)
	}
	return nil
}

// newType begins a type with its OIDs.
func (d *definer) newType(names []*pg.Node, kind catalog.TypeKind) (*catalog.Type, error) {
	parts, err := stringList(names)
	if err != nil {
		return nil, err
	}
	t := &catalog.Type{Name: parts[len(parts)-1], Kind: kind, Owner: d.owner}
	schema := ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	if t.Schema, err = d.schemaOf(schema); err != nil {
		return nil, err
	}
	if err := d.typeFree(t.Schema, t.Name); err != nil {
		return nil, err
	}
	return t, d.oids(&t.OID, &t.Array)
}

// oids takes fresh OIDs from the counter.
func (d *definer) oids(list ...*catalog.OID) error {
	for _, p := range list {
		oid, err := d.editor.NextOID()
		if err != nil {
			return err
		}
		*p = oid
	}
	return nil
}

// maxLabel is the longest label of an enum in bytes (NAMEDATALEN - 1).
const maxLabel = 63

func checkLabel(label string) error {
	if len(label) > maxLabel {
		return pgerr.New(pgerr.InvalidName, "invalid enum label \"%s\"", label).
			WithDetail("Labels must be %d bytes or less.", maxLabel)
	}
	return nil
}

func (d *definer) createEnum(n *pg.CreateEnumStmt) error {
	t, err := d.newType(n.TypeName, catalog.EnumType)
	if err != nil {
		return err
	}
	labels, err := stringList(n.Vals)
	if err != nil {
		return err
	}
	for i, label := range labels {
		if err := checkLabel(label); err != nil {
			return err
		}
		if slices.Contains(labels[:i], label) {
			return pgerr.New(pgerr.UniqueViolation, "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"")
		}
		oid, err := d.editor.NextOID()
		if err != nil {
			return err
		}
		t.Labels = append(t.Labels, datum.EnumLabel{OID: oid, Label: label, Sort: float32(i + 1)})
	}
	return d.editor.PutType(t)
}

// findUserType finds a type that ALTER or DROP names; nil if there is none. A
// relation's row type is not one of them.
func (d *definer) findUserType(names []*pg.Node) (*catalog.Type, string, error) {
	parts, err := stringList(names)
	if err != nil {
		return nil, "", err
	}
	name := parts[len(parts)-1]
	schema := ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	for _, s := range d.searchIn(schema) {
		if t, ok := d.catalog().Type(s, name); ok {
			if !t.Local() {
				return t, name, d.notLocal()
			}
			return t, name, nil
		}
	}
	return nil, strings.Join(parts, "."), nil
}

func errNoType(name string) error {
	return pgerr.New(pgerr.UndefinedObject, "type \"%s\" does not exist", name)
}

func (d *definer) alterEnum(n *pg.AlterEnumStmt) error {
	old, name, err := d.findUserType(n.TypeName)
	switch {
	case err != nil:
		return err
	case old == nil:
		return errNoType(name)
	case old.Kind != catalog.EnumType:
		return pgerr.New(pgerr.WrongObjectType, "%s is not an enum", datum.QuoteIdent(old.Name))
	}
	if err := checkLabel(n.NewVal); err != nil {
		return err
	}
	t := *old
	t.Labels = slices.Clone(old.Labels)
	at := func(label string) int {
		return slices.IndexFunc(t.Labels, func(l datum.EnumLabel) bool { return l.Label == label })
	}
	if n.OldVal != "" {
		i := at(n.OldVal)
		if i < 0 {
			return pgerr.New(pgerr.InvalidParameterValue, "\"%s\" is not an existing enum label", n.OldVal)
		}
		if at(n.NewVal) >= 0 {
			return pgerr.New(pgerr.DuplicateObject, "enum label \"%s\" already exists", n.NewVal)
		}
		t.Labels[i].Label = n.NewVal
		return d.editor.PutType(&t)
	}
	if at(n.NewVal) >= 0 {
		if n.SkipIfNewValExists {
			d.say(pgerr.DuplicateObject, "enum label \"%s\" already exists, skipping", n.NewVal)
			return nil
		}
		return pgerr.New(pgerr.DuplicateObject, "enum label \"%s\" already exists", n.NewVal)
	}
	i := len(t.Labels)
	if n.NewValNeighbor != "" {
		if i = at(n.NewValNeighbor); i < 0 {
			return pgerr.New(pgerr.InvalidParameterValue, "\"%s\" is not an existing enum label", n.NewValNeighbor)
		}
		if n.NewValIsAfter {
			i++
		}
	}
	label := datum.EnumLabel{Label: n.NewVal}
	if label.Sort, err = sortBetween(t.Labels, i); err != nil {
		return err
	}
	if label.OID, err = d.editor.NextOID(); err != nil {
		return err
	}
	t.Labels = slices.Insert(t.Labels, i, label)
	return d.editor.PutType(&t)
}

// sortBetween is the sort number of a label put at position i: values that are
// stored keep theirs.
func sortBetween(labels []datum.EnumLabel, i int) (float32, error) {
	switch {
	case len(labels) == 0:
		return 1, nil
	case i == 0:
		return labels[0].Sort - 1, nil
	case i == len(labels):
		return labels[i-1].Sort + 1, nil
	}
	lo, hi := labels[i-1].Sort, labels[i].Sort
	mid := (lo + hi) / 2
	if mid <= lo || mid >= hi {
		return 0, pgerr.NotBuilt("there is no room for another label between \"%s\" and \"%s\"", labels[i-1].Label, labels[i].Label)
	}
	return mid, nil
}

func (d *definer) createComposite(n *pg.CompositeTypeStmt, st parse.Statement) error {
	names := []*pg.Node{pg.MakeStrNode(n.Typevar.Relname)}
	if n.Typevar.Schemaname != "" {
		names = []*pg.Node{pg.MakeStrNode(n.Typevar.Schemaname), names[0]}
	}
	t, err := d.newType(names, catalog.CompositeType)
	if err != nil {
		return err
	}
	if err := d.oids(&t.Relation); err != nil {
		return err
	}
	for _, c := range n.Coldeflist {
		col := c.GetColumnDef()
		typ, err := d.resolveType(col.TypeName, st)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(t.Fields, func(f catalog.Column) bool { return f.Name == col.Colname }) {
			return pgerr.New(pgerr.DuplicateColumn, "column \"%s\" specified more than once", col.Colname)
		}
		if typ.Kind == datum.Pseudo {
			return pgerr.New(pgerr.InvalidTableDefinition, "column \"%s\" has pseudo-type %s", col.Colname, datum.FormatType(typ))
		}
		t.Fields = append(t.Fields, catalog.Column{Name: col.Colname, TypeOID: typ.OID, TypMod: typ.Mod, Type: typ})
	}
	return d.editor.PutType(t)
}

func (d *definer) createDomain(n *pg.CreateDomainStmt, st parse.Statement) error {
	t, err := d.newType(n.Domainname, catalog.DomainType)
	if err != nil {
		return err
	}
	base, err := d.resolveType(n.TypeName, st)
	if err != nil {
		return err
	}
	switch base.Kind {
	case datum.Pseudo:
		return pgerr.New(pgerr.DatatypeMismatch, "\"%s\" is not a valid base type for a domain", base.Name)
	}
	if n.CollClause != nil {
		return pgerr.NotBuilt("COLLATE of a domain is not supported")
	}
	t.BaseOID, t.BaseMod = base.OID, base.Mod
	null := false
	for _, c := range n.Constraints {
		c := c.GetConstraint()
		switch c.Contype {
		case pg.ConstrType_CONSTR_NOTNULL, pg.ConstrType_CONSTR_NULL:
			isNull := c.Contype == pg.ConstrType_CONSTR_NULL
			if isNull && t.NotNull || !isNull && null {
				return pgerr.New(pgerr.SyntaxError, "conflicting NULL/NOT NULL constraints")
			}
			t.NotNull, null = !isNull, isNull
		case pg.ConstrType_CONSTR_DEFAULT:
			if t.Default != "" {
				return pgerr.New(pgerr.SyntaxError, "multiple default expressions")
			}
			if t.Default, err = deparse(c.RawExpr); err != nil {
				return err
			}
		case pg.ConstrType_CONSTR_CHECK:
			if err := d.addDomainCheck(t, c); err != nil {
				return err
			}
		default:
			return pgerr.New(pgerr.SyntaxError, "this kind of constraint is not possible for domains")
		}
	}
	return d.putDomain(t, st)
}

// addDomainCheck adds one CHECK constraint.
func (d *definer) addDomainCheck(t *catalog.Type, c *pg.Constraint) error {
	text, err := deparse(c.RawExpr)
	if err != nil {
		return err
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(t.Checks, func(k catalog.Check) bool { return k.Name == name })
	}
	name := c.Conname
	if name == "" {
		base := shortName([]string{t.Name, "check"})
		name = base
		for i := 1; taken(name); i++ {
			name = base + itoa(i)
		}
	} else if taken(name) {
		return pgerr.New(pgerr.DuplicateObject, "constraint \"%s\" for domain \"%s\" already exists", name, t.Name)
	}
	k := catalog.Check{Name: name, Expr: text}
	if err := d.oids(&k.OID); err != nil {
		return err
	}
	t.Checks = append(t.Checks, k)
	return nil
}

// putDomain writes a domain and analyzes its constraints and default.
func (d *definer) putDomain(t *catalog.Type, st parse.Statement) error {
	if err := d.editor.PutType(t); err != nil {
		return err
	}
	now, _ := d.catalog().Type(t.Schema, t.Name)
	opts := d.options(st)
	if _, err := plan.ExpressionText("NULL", datum.T(now.Desc), opts); err != nil {
		return err
	}
	if t.Default == "" {
		return nil
	}
	_, err := plan.ExpressionText(t.Default, datum.T(now.Desc), opts)
	return err
}

func (d *definer) alterDomain(n *pg.AlterDomainStmt, st parse.Statement) error {
	old, name, err := d.findUserType(n.TypeName)
	switch {
	case err != nil:
		return err
	case old == nil:
		return errNoType(name)
	case old.Kind != catalog.DomainType:
		return pgerr.New(pgerr.WrongObjectType, "%s is not a domain", datum.QuoteIdent(old.Name))
	}
	t := *old
	t.Checks = slices.Clone(old.Checks)
	verify := false
	switch n.Subtype {
	case "T": // SET or DROP DEFAULT
		t.Default = ""
		if n.Def != nil {
			if t.Default, err = deparse(n.Def); err != nil {
				return err
			}
		}
	case "N":
		t.NotNull = false
	case "O":
		t.NotNull, verify = true, true
	case "C":
		c := n.Def.GetConstraint()
		if c.Contype != pg.ConstrType_CONSTR_CHECK {
			return pgerr.NotBuilt("this kind of constraint is not supported for domains")
		}
		if err := d.addDomainCheck(&t, c); err != nil {
			return err
		}
		verify = !c.SkipValidation
	case "X":
		i := slices.IndexFunc(t.Checks, func(k catalog.Check) bool { return k.Name == n.Name })
		if i < 0 {
			if n.MissingOk {
				d.say(pgerr.SuccessfulCompletion, "constraint \"%s\" of domain \"%s\" does not exist, skipping", n.Name, t.Name)
				return nil
			}
			return pgerr.New(pgerr.UndefinedObject, "constraint \"%s\" of domain \"%s\" does not exist", n.Name, t.Name)
		}
		t.Checks = slices.Delete(t.Checks, i, i+1)
	default:
		return pgerr.NotBuilt("this form of ALTER DOMAIN is not supported")
	}
	if err := d.putDomain(&t, st); err != nil {
		return err
	}
	if verify {
		return d.verifyDomain(t.OID)
	}
	return nil
}

// verifyDomain applies the constraints of a changed domain to all columns of it.
func (d *definer) verifyDomain(oid catalog.OID) error {
	for _, t := range d.catalog().Tables() {
		if t.Kind != catalog.OrdinaryTable || t.System {
			continue
		}
		for i := range t.Columns {
			col := &t.Columns[i]
			if col.Dropped || !uses(col.Type.Desc, oid) {
				continue
			}
			if col.Type.Kind != datum.Domain {
				return pgerr.NotBuilt("adding a constraint to a domain that is part of column \"%s.%s\" is not supported", t.Name, col.Name)
			}
			root := datum.FormatType(col.Type.Root())
			q := "SELECT (" + datum.QuoteIdent(col.Name) + "::" + root + ")::" + datum.FormatType(col.Type) + " FROM " + quoteQualified(t)
			if err := d.runQuery(q); err != nil {
				e, ok := pgerr.From(err)
				switch {
				case ok && e.Code == pgerr.CheckViolation:
					return pgerr.New(pgerr.CheckViolation, "column \"%s\" of table \"%s\" contains values that violate the new constraint", col.Name, t.Name)
				case ok && e.Code == pgerr.NotNullViolation:
					return pgerr.New(pgerr.NotNullViolation, "column \"%s\" of table \"%s\" contains null values", col.Name, t.Name)
				}
				return err
			}
		}
	}
	return nil
}

// uses tells that a type is made of the type with an OID: is it, an array of it,
// a domain over it, a row with it.
func uses(t *datum.Desc, oid catalog.OID) bool {
	switch {
	case t == nil || t.OID < catalog.FirstPrivateOID:
		return false
	case t.OID == oid:
		return true
	case t.Elem != nil:
		return uses(t.Elem, oid)
	case t.Kind == datum.Domain:
		return uses(t.Base.Desc, oid)
	case t.IsRange():
		return uses(t.Sub, oid)
	case t.IsMultirange():
		return uses(t.Range, oid)
	}
	return slices.ContainsFunc(t.Fields, func(f datum.Field) bool { return uses(f.Type.Desc, oid) })
}

// typeDependents names everything that mentions a type directly.
func (d *definer) typeDependents(desc *datum.Desc) []dependent {
	var who []dependent
	shown := "type " + desc.Name
	is := func(t datum.Type) bool {
		d := t.Desc
		if d != nil && d.IsArray() {
			d = d.Elem
		}
		// A multirange type goes with its range type.
		return d != nil && (d.OID == desc.OID || d.IsMultirange() && d.Range.OID == desc.OID)
	}
	for _, t := range d.catalog().Tables() {
		for i := range t.Columns {
			if c := &t.Columns[i]; !c.Dropped && is(c.Type) && t.RowType != desc.OID {
				if t.HasQuery() {
					who = append(who, dependent{view: t, text: relationWord(t) + t.Name + " depends on " + shown})
					break
				}
				who = append(who, dependent{table: t, column: c.Name, text: "column " + c.Name + " of table " + t.Name + " depends on " + shown})
			}
		}
		if t.Kind == catalog.View && !slices.ContainsFunc(who, func(w dependent) bool { return w.view == t }) &&
			strings.Contains(t.Query, "::"+datum.FormatType(datum.T(desc))) {
			who = append(who, dependent{view: t, text: "view " + t.Name + " depends on " + shown})
		}
	}
	for _, t := range d.catalog().Types() {
		if t.Kind == catalog.DomainType && is(t.Desc.Base) || t.Kind == catalog.RangeType && is(datum.T(t.Desc.Sub)) {
			who = append(who, dependent{typ: t, text: "type " + t.Name + " depends on " + shown})
		}
		for i := range t.Fields {
			if is(t.Fields[i].Type) {
				who = append(who, dependent{typ: t, column: t.Fields[i].Name, text: "column " + t.Fields[i].Name + " of composite type " + t.Name + " depends on " + shown})
			}
		}
	}
	for _, f := range d.catalog().AllFuncs() {
		mentions := is(f.Ret)
		for _, a := range f.Args {
			mentions = mentions || is(a.Type)
		}
		if mentions {
			who = append(who, dependent{fn: f, text: kindName(f) + " " + f.Name + "(" + f.Signature() + ") depends on " + shown})
		}
	}
	return who
}

func (d *definer) dropType(n *pg.DropStmt, o *pg.Node) error {
	names := o.GetTypeName().GetNames()
	t, name, err := d.findUserType(names)
	if err != nil {
		return err
	}
	isDomain := n.RemoveType == pg.ObjectType_OBJECT_DOMAIN
	if t == nil {
		for _, s := range SearchPath {
			if rel, ok := d.catalog().Table(s, name); ok && !isDomain {
				return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop type %s because table %s requires it", name, rel.Name).
					WithHint("You can drop table %s instead.", rel.Name)
			}
		}
		if n.MissingOk {
			d.say(pgerr.SuccessfulCompletion, "type \"%s\" does not exist, skipping", name)
			return nil
		}
		return errNoType(name)
	}
	if isDomain && t.Kind != catalog.DomainType {
		return pgerr.New(pgerr.WrongObjectType, "%s is not a domain", datum.QuoteIdent(t.Name))
	}
	if t.Kind == catalog.MultirangeType {
		return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop type %s because type %s requires it", t.Name, t.Desc.Range.Name).
			WithHint("You can drop type %s instead.", t.Desc.Range.Name)
	}
	return d.removeType(t, n.Behavior)
}

// removeType drops a type and, with CASCADE, what depends on it.
func (d *definer) removeType(t *catalog.Type, behavior pg.DropBehavior) error {
	if err := d.settleDependents("type "+t.Name, d.typeDependents(t.Desc), behavior); err != nil {
		return err
	}
	if t.Kind == catalog.RangeType {
		return d.editor.DropRange(t)
	}
	return d.editor.DropType(t)
}
