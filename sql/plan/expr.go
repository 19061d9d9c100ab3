package plan

import (
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// Expr is a typed expression. The set of implementations is closed: the types
// of this file.
type Expr interface {
	// Type is the type of the value.
	Type() datum.Type
}

type typed struct{ typ datum.Type }

func (t typed) Type() datum.Type { return t.typ }

// Const is a constant.
type Const struct {
	typed
	Value datum.Datum
	at    int32 // its location in the text plus 1; 0 = unknown
}

// Slot reads a slot of the frame.
type Slot struct {
	typed
	Index int
	Name  string // for messages and column headings
	At    Place  // of a system column
}

// Param reads parameter Index (from 0): $1 of a prepared statement, or a
// variable of PL/pgSQL.
type Param struct {
	typed
	Index int
}

// Call calls a built-in function or operator.
type Call struct {
	typed
	Func *builtin.Func
	// Eval is Func.Eval, or what Func.Bind made for these types.
	Eval builtin.Eval
	Args []Expr
}

// UserCall calls a user-defined function that returns one value. Out-of-line
// calls go through the environment of the execution.
type UserCall struct {
	typed
	Func *catalog.Func
	Args []Expr
}

// BoolOp is AND, OR (any number of arguments) or NOT (one).
type BoolOp struct {
	typed
	Op   BoolOpKind
	Args []Expr
}

// BoolOpKind selects the operation of a [BoolOp].
type BoolOpKind uint8

// The boolean operations.
const (
	And BoolOpKind = iota
	Or
	Not
)

// IsNull is IS [NOT] NULL.
type IsNull struct {
	typed
	Arg Expr
	Not bool
}

// BoolTest is IS [NOT] TRUE, FALSE or UNKNOWN.
type BoolTest struct {
	typed
	Arg  Expr
	Want datum.Datum // true, false, or null for UNKNOWN
	Not  bool
}

// Distinct is IS [NOT] DISTINCT FROM, by the equality of the common type.
type Distinct struct {
	typed
	Left, Right Expr // of one type
	Not         bool // IS NOT DISTINCT FROM
	Equal       builtin.Eval
}

// Case is CASE; the simple form has been rewritten to comparisons with Arg,
// which is computed once into slot ArgSlot.
type Case struct {
	typed
	Arg     Expr // nil for the searched form
	ArgSlot int
	Whens   []When
	Else    Expr // nil = null
}

// When is one branch of a [Case].
type When struct{ Cond, Result Expr }

// Coalesce is COALESCE.
type Coalesce struct {
	typed
	Args []Expr
}

// MinMax is GREATEST or LEAST over arguments of one type; nulls are ignored.
type MinMax struct {
	typed
	Args  []Expr
	Least bool
}

// NullIf is NULLIF: null if Equal(Left, Right), else Value (Left before it was
// coerced for the comparison).
type NullIf struct {
	typed
	Left, Right Expr
	Value       Expr
	Equal       builtin.Eval
}

// CoerceIO converts through the text forms of the two types.
type CoerceIO struct {
	typed
	Arg Expr
}

// Relabel gives a value another type of the same representation.
type Relabel struct {
	typed
	Arg Expr
}

// CoerceMod applies the modifier of its type (length, precision).
type CoerceMod struct {
	typed
	Arg      Expr
	Explicit bool
}

// CoerceArray converts every element of an array by Elem, which reads the
// element from slot ElemSlot.
type CoerceArray struct {
	typed
	Arg      Expr
	Elem     Expr
	ElemSlot int
}

// ArrayExpr is ARRAY[...]; Nested tells that the elements are arrays themselves.
type ArrayExpr struct {
	typed
	Args   []Expr
	Nested bool
}

// AnyAll is operator ANY/ALL (array): Eval over (Left, element).
type AnyAll struct {
	typed
	Left  Expr
	Array Expr
	Eval  builtin.Eval
	All   bool
	// Equality tells that the operator is the = of the type, so that a list of
	// constants may be hashed.
	Equality bool
	// Op is the name of the operator.
	Op string
}

// Subscript is array[index, ...] or a slice array[lo:hi, ...].
type Subscript struct {
	typed
	Array  Expr
	Index  []Expr // element: one per dimension
	Slice  bool
	Lo, Hi []Expr // slice: nil entries for omitted bounds
}

// Row is ROW(...): an anonymous record.
type Row struct {
	typed
	Args []Expr
	raw  []Expr // Args before literals of unknown type became text; nil = same
	at   int32  // its location in the text plus 1; 0 = unknown
}

// Field takes a field (from 0) of a composite or record value.
type Field struct {
	typed
	Arg   Expr
	Index int
}

// RowCompare compares two rows column by column: = <> < <= > >= in lexical
// order, with nulls as SQL demands.
type RowCompare struct {
	typed
	Op          string
	Left, Right []Expr
}

// SubqueryKind says how the rows of a subquery become a value.
type SubqueryKind uint8

// The kinds of subqueries.
const (
	ScalarSub SubqueryKind = iota // one row, one column; 21000 on more
	ExistsSub
	AnySub   // Test ANY
	AllSub   // Test ALL
	ArraySub // ARRAY(SELECT ...)
	RowSub   // one row, several columns: into the slots of Out only
)

// Subquery is a subquery in an expression.
type Subquery struct {
	typed
	Kind SubqueryKind
	Plan Node
	Out  []int // slots of its columns
	// Test compares, for ANY and ALL: it reads the slots of Out.
	Test Expr
	// Correlated tells that it reads slots of an outer query or that a volatile
	// function forces it to run every time; others run once per execution of
	// the statement and their result is kept.
	Correlated bool
	// ID numbers the subqueries of a statement, from 0.
	ID int
	// Hash, if not nil, is an equality ANY whose right side does not depend on
	// the outer row: the rows of Out[0] are hashed once; the left value is Hash.
	Hash Expr

	semi *semiSource // while the statement is planned
}

// NewConst makes a constant.
func NewConst(t datum.Type, v datum.Datum) *Const { return &Const{typed: typed{t}, Value: v} }

// NewSlot makes a slot reference.
func NewSlot(t datum.Type, index int, name string) *Slot {
	return &Slot{typed: typed{t}, Index: index, Name: name}
}

// NewParam makes a parameter reference; index counts from 0.
func NewParam(t datum.Type, index int) *Param { return &Param{typed{t}, index} }
