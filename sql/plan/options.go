package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Options is what a statement is planned against.
type Options struct {
	Catalog *catalog.Catalog
	// SearchPath are the schemas in which unqualified names are looked up;
	// pg_catalog is searched first unless it is named.
	SearchPath []string
	// Params are the declared types of $1, $2, ...; the zero Type, and numbers
	// beyond the list, are inferred from use. On return of [Statement] the types
	// are in Plan.Params.
	Params []datum.Type
	// Variable resolves a name that could be a PL/pgSQL variable (one to three
	// parts: v, rec.field, block.v) to an expression, usually a [Param]; nil, nil
	// means that there is none. A name that is both a column and a variable is
	// ambiguous (42702), as in PostgreSQL.
	Variable func(parts []string) (Expr, error)
	// VariableFields lists the fields of a row variable, for rec.*; nil, nil means
	// that there is none of the name.
	VariableFields func(parts []string) ([]string, error)
	// ColumnFirst makes a name that is both a column and a variable the column
	// (SQL functions, #variable_conflict use_column) instead of an error.
	ColumnFirst bool
	// Note, if not nil, is given every catalog row that planning looks at, found or
	// not: a transaction whose planning fails has read them all the same.
	Note func(reads []rwset.Read)
	// Virtual finds a computed relation; nil means there are none.
	Virtual func(schema, name string) *Virtual
	// Sequence makes the relation of one row that a sequence is; nil refuses it.
	Sequence func(t *catalog.Table) *Virtual
	// Contract tells that the statement runs inside a contract: what is not
	// deterministic there is refused.
	Contract bool
	// Refused, if not nil, is given what a contract may not use, and planning
	// goes on: for tools that list everything that is wrong.
	Refused func(Refusal, *pgerr.Error)
	// Settings gives what literals of date/time types are read with at plan time.
	Format *datum.Format
	// Script is the text that locations in the parse tree refer to, and Skip the
	// bytes in front that the user did not write (parse.ExpressionOffset).
	Script string
	Skip   int
}

// ExprPlan is a planned stand-alone expression.
type ExprPlan struct {
	Expr       Expr
	Slots      int
	Subqueries int
	CTEs       int
	Reads      []rwset.Read
}

// Statement plans SELECT, VALUES, INSERT, UPDATE, DELETE and MERGE (with WITH).
// Errors are *pgerr.Error with a position.
func Statement(stmt *pg.Node, opts *Options) (*Plan, error) {
	p := newPlanner(opts)
	return p.statement(stmt)
}

// Expression plans an expression that stands alone (PL/pgSQL, a default) and,
// unless want is the zero Type, coerces it to want as an assignment does.
func Expression(node *pg.Node, want datum.Type, opts *Options) (*ExprPlan, error) {
	p := newPlanner(opts)
	return p.standalone(node, want)
}

// ExpressionText parses and plans the text of an expression.
func ExpressionText(text string, want datum.Type, opts *Options) (*ExprPlan, error) {
	node, err := parse.Expression(text)
	if err != nil {
		return nil, err
	}
	o := *opts
	o.Script, o.Skip = "SELECT "+text, parse.ExpressionOffset
	return Expression(node, want, &o)
}
