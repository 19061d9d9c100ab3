package pgcatalog

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

//go:embed relations.txt
var relationsText string

// Env is what the relations of one query are computed from.
type Env struct {
	Catalog *catalog.Catalog
	// Users are the roles: every user of the network.
	Users []string
	// Settings are name and value of the run-time parameters.
	Settings [][2]string
	Database string
	User     string
	// Path is the search path of the session: texts leave out schemas in it.
	Path []string
	// SequenceState tells the state of a sequence; nil without schema private.
	SequenceState func(def *catalog.SequenceDef) (last int64, called bool, err error)
	found         *lookup // made on first use
	// kept are the rows of relations that one query reads again and again (a
	// subquery that runs once per row); read counts how often.
	kept map[*relation][][]datum.Datum
	read map[*relation]int
	// Statements are the prepared statements of the session.
	Statements []Statement
}

// Statement is one row of pg_prepared_statements.
type Statement struct {
	Name, Text string
	Params     []datum.Type
}

// row is one row under construction; columns that are not set are null.
type row struct {
	rel  *relation
	vals []datum.Datum
}

// set sets a column by name. An unknown name is a mistake in this package.
func (r *row) set(name string, v datum.Datum) *row {
	i, ok := r.rel.index[name]
	if !ok {
		panic("pgcatalog: " + r.rel.Name + " has no column " + name)
	}
	r.vals[i] = v
	return r
}

func (r *row) str(name, v string) *row           { return r.set(name, datum.Str(v)) }
func (r *row) int(name string, v int64) *row     { return r.set(name, datum.Int(v)) }
func (r *row) oid(name string, v datum.OID) *row { return r.set(name, datum.Int(int64(v))) }
func (r *row) bool(name string, v bool) *row     { return r.set(name, datum.Bool(v)) }
func (r *row) char(name string, v byte) *row     { return r.set(name, datum.Int(int64(v))) }

// bools sets several columns to one value.
func (r *row) bools(v bool, names ...string) *row {
	for _, n := range names {
		r.bool(n, v)
	}
	return r
}

// zeros sets several number columns to 0.
func (r *row) zeros(names ...string) *row {
	for _, n := range names {
		r.int(n, 0)
	}
	return r
}

// yes sets an information_schema yes_or_no column.
func (r *row) yes(name string, v bool) *row {
	if v {
		return r.str(name, "YES")
	}
	return r.str(name, "NO")
}

// relation is a computed relation with its columns by name.
type relation struct {
	plan.Virtual
	index map[string]int
}

// filler makes the rows of a relation. next hands out an empty row that emit
// then takes.
type filler func(env *Env, next func() *row, emit func() error) error

var relations = loadRelations()

// Find returns the computed relation of a name, nil if there is none.
func Find(schema, name string) *plan.Virtual {
	r := relations[schema+"."+name]
	if r == nil {
		return nil
	}
	return &r.Virtual
}

func loadRelations() map[string]*relation {
	out := map[string]*relation{}
	for _, line := range strings.Split(strings.TrimSpace(relationsText), "\n") {
		words := strings.Fields(line)
		schema, name, _ := strings.Cut(words[0], ".")
		oid, err := strconv.Atoi(words[1])
		if err != nil {
			panic("pgcatalog: relations.txt: " + line)
		}
		r := &relation{index: map[string]int{}}
		r.OID, r.Schema, r.Name = datum.OID(oid), schema, name
		for i, w := range words[2:] {
			col, typ, _ := strings.Cut(w, ":")
			r.Columns = append(r.Columns, plan.VirtualColumn{Name: col, Type: datum.T(columnType(typ))})
			r.index[col] = i
		}
		r.Columns = append(r.Columns, plan.VirtualColumn{Name: "tableoid", Type: datum.T(datum.OIDType), Hidden: true})
		r.Rows = r.rows
		out[words[0]] = r
	}
	return out
}

// columnType maps the types of relations.txt; what does not exist here is text.
func columnType(name string) *datum.Desc {
	switch name {
	case "_aclitem", "anyarray":
		return datum.Text.Array
	case "pg_lsn", "pg_dependencies", "pg_ndistinct", "pg_mcv_list", "_pg_statistic":
		return datum.Text
	}
	if d := datum.ByName(name); d != nil {
		return d
	}
	panic("pgcatalog: relations.txt names unknown type " + name)
}

// rows gives the rows of the relation.
func (r *relation) rows(env any, emit func([]datum.Datum) error) error {
	e := env.(*Env)
	if done, err := e.replay(r, emit); done {
		return err
	}
	return r.compute(e, emit)
}

// compute runs the filler of the relation.
func (r *relation) compute(e *Env, emit func([]datum.Datum) error) error {
	fill := fillers[r.Schema+"."+r.Name]
	if fill == nil {
		return nil
	}
	current := &row{rel: r, vals: make([]datum.Datum, len(r.Columns))}
	last := len(r.Columns) - 1 // tableoid
	next := func() *row {
		for i := range current.vals {
			current.vals[i] = datum.Null
		}
		current.vals[last] = datum.Int(int64(r.OID))
		return current
	}
	return fill(e, next, func() error { return emit(current.vals) })
}

// replay gives the rows of a relation that the query has read before, keeping
// them at the second time. It tells whether it did.
func (e *Env) replay(r *relation, emit func([]datum.Datum) error) (bool, error) {
	if e.read == nil {
		e.read, e.kept = map[*relation]int{}, map[*relation][][]datum.Datum{}
	}
	e.read[r]++
	if e.read[r] < 2 {
		return false, nil
	}
	if e.read[r] == 2 {
		err := r.compute(e, func(row []datum.Datum) error {
			e.kept[r] = append(e.kept[r], slices.Clone(row))
			return nil
		})
		if err != nil {
			return true, err
		}
	}
	for _, row := range e.kept[r] {
		if err := emit(row); err != nil {
			return true, err
		}
	}
	return true, nil
}

var fillers map[string]filler

func init() {
	fillers = map[string]filler{
		"pg_catalog.pg_namespace":                            namespaces,
		"pg_catalog.pg_class":                                classes,
		"pg_catalog.pg_attribute":                            attributes,
		"pg_catalog.pg_attrdef":                              defaults,
		"pg_catalog.pg_index":                                indexes,
		"pg_catalog.pg_constraint":                           constraints,
		"pg_catalog.pg_tables":                               tables,
		"pg_catalog.pg_depend":                               dependencies,
		"pg_catalog.pg_policy":                               policies,
		"pg_catalog.pg_policies":                             policyView,
		"pg_catalog.pg_views":                                views,
		"pg_catalog.pg_matviews":                             materializedViews,
		"pg_catalog.pg_indexes":                              indexDefinitions,
		"pg_catalog.pg_rewrite":                              rewrites,
		"pg_catalog.pg_sequence":                             sequenceRows,
		"pg_catalog.pg_sequences":                            sequenceViews,
		"pg_catalog.pg_proc":                                 procs,
		"pg_catalog.pg_aggregate":                            aggregates,
		"pg_catalog.pg_type":                                 types,
		"pg_catalog.pg_trigger":                              triggers,
		"pg_catalog.pg_description":                          descriptions,
		"pg_catalog.pg_enum":                                 enumLabels,
		"pg_catalog.pg_range":                                ranges,
		"pg_catalog.pg_operator":                             operators,
		"pg_catalog.pg_cast":                                 casts,
		"pg_catalog.pg_am":                                   accessMethods,
		"pg_catalog.pg_language":                             languages,
		"pg_catalog.pg_collation":                            collations,
		"pg_catalog.pg_database":                             databases,
		"pg_catalog.pg_tablespace":                           tablespaces,
		"pg_catalog.pg_roles":                                roles,
		"pg_catalog.pg_authid":                               roles,
		"pg_catalog.pg_user":                                 users,
		"pg_catalog.pg_settings":                             settings,
		"pg_catalog.pg_prepared_statements":                  statements,
		"pg_catalog.pg_opclass":                              opclasses,
		"information_schema.information_schema_catalog_name": infoCatalog,
		"information_schema.tables":                          infoTables,
		"information_schema.columns":                         infoColumns,
		"information_schema.schemata":                        infoSchemata,
		"information_schema.views":                           infoViews,
		"information_schema.routines":                        infoRoutines,
		"information_schema.parameters":                      infoParameters,
		"information_schema.table_constraints":               infoTableConstraints,
		"information_schema.key_column_usage":                infoKeyColumns,
		"information_schema.constraint_column_usage":         infoConstraintColumns,
		"information_schema.referential_constraints":         infoReferential,
		"information_schema.check_constraints":               infoChecks,
	}
}
