package builtin

import "github.com/tallystick/tallystick/sql/datum"

// Volatility is pg_proc.provolatile.
type Volatility byte

// The volatility classes.
const (
	Immutable Volatility = 'i'
	Stable    Volatility = 's'
	Volatile  Volatility = 'v'
)

// FuncKind is pg_proc.prokind.
type FuncKind byte

// The kinds of functions.
const (
	Scalar    FuncKind = 'f'
	Aggregate FuncKind = 'a'
	Window    FuncKind = 'w'
)

// Eval computes a function. Arguments of a strict function are never null. The
// slice belongs to the caller and must not be kept.
type Eval func(c *Ctx, args []datum.Datum) (datum.Datum, error)

// Func is one function, operator implementation or aggregate of pg_catalog.
type Func struct {
	OID      datum.OID
	Name     string
	Args     []*datum.Desc
	ArgNames []string // for named notation; nil where PostgreSQL has none
	Variadic bool     // the last argument is an array (or "any") that collects the rest
	Defaults int      // how many trailing arguments may be left out
	// DefaultArgs are the values of the trailing arguments left out.
	DefaultArgs []datum.Datum
	Ret         *datum.Desc
	RetSet      bool
	Kind        FuncKind
	Strict      bool
	Volatility  Volatility
	// Contract says whether a contract may call the function; see [Refusal].
	Contract *Refusal
	// Steps is what a call costs in the step budget; 0 means 1.
	Steps int64

	// Eval computes a scalar function. It is nil when the function depends on
	// the types of its arguments (polymorphic ones): then Bind makes it.
	Eval Eval
	// Bind makes the implementation for given argument and result types.
	Bind func(args []datum.Type, ret datum.Type) (Eval, error)
	// Set makes the rows of a set-returning function; emit's slice belongs to
	// the function. Columns names them (nil: one column, named as the function).
	Set     func(c *Ctx, args []datum.Datum, emit func(row []datum.Datum) error) error
	BindSet func(args []datum.Type) (SetEval, []Column, error)
	Columns []Column
	// NewState makes the transition state of an aggregate for one group.
	NewState func(args []datum.Type) AggState
	// OrderSensitive marks an aggregate whose result depends on input order
	// (array_agg, string_agg, float sums).
	OrderSensitive bool

	built bool // has an implementation; see Built
}

// SetEval produces the rows of a set-returning function.
type SetEval func(c *Ctx, args []datum.Datum, emit func(row []datum.Datum) error) error

// Column names one output column of a set-returning function.
type Column struct {
	Name string
	Type datum.Type
}

// AggState is the running state of one aggregate over one group.
type AggState interface {
	// Add takes one input row's arguments (strict aggregates never see nulls).
	Add(c *Ctx, args []datum.Datum) error
	// Result is the value over the rows so far. A window asks for it and then adds
	// further rows; what it returned before must not change by that.
	Result(c *Ctx) (datum.Datum, error)
}

// Refusal says why a contract may not call a function and what to use instead.
type Refusal struct {
	Why         string // "its result differs between nodes"
	Replacement string // "tx_time()"; empty if there is none
}

// Operator is one row of pg_operator; Left is nil for prefix operators.
type Operator struct {
	OID         datum.OID
	Name        string
	Left, Right *datum.Desc
	Func        *Func
	Commutator  string // name, with swapped operands; "" if none
	Negator     string
}

// CastContext is pg_cast.castcontext.
type CastContext byte

// The contexts, weakest first: an implicit cast is allowed everywhere.
const (
	Implicit   CastContext = 'i'
	Assignment CastContext = 'a'
	Explicit   CastContext = 'e'
)

// CastMethod is pg_cast.castmethod.
type CastMethod byte

// The methods of casts.
const (
	ByFunc   CastMethod = 'f'
	ByIO     CastMethod = 'i' // through the text forms
	ByBinary CastMethod = 'b' // same representation
	// ByElement casts every element of an array. It is not stored in pg_cast:
	// FindCast derives it from the cast of the elements.
	ByElement CastMethod = 'a'
)

// Cast is one row of pg_cast.
type Cast struct {
	Source, Target *datum.Desc
	Context        CastContext
	Method         CastMethod
	Func           *Func // takes the source value; the type modifier is applied by Desc.Coerce
	// Elem is the cast of the elements if Method is ByElement.
	Elem *Cast
}
