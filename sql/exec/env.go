package exec

import (
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// Env is what one transaction, or one local query, lends to the programs that
// it runs. It is not safe for concurrent use.
type Env struct {
	// Txn is the workspace on the replicated store.
	Txn *mvcc.Txn
	// Private is the workspace on the store of schema private; nil in a contract,
	// which never sees it.
	Private *mvcc.Txn
	// RowID numbers the rows of private tables without a primary key.
	RowID func() (int64, error)
	// XID is the transaction number that written rows carry.
	XID uint64
	// Ctx is passed to every function.
	Ctx builtin.Ctx
	// Catalog is the catalog at the snapshot of Txn.
	Catalog *catalog.Catalog
	// Virtual is handed to computed relations (plan.Virtual).
	Virtual any
	// Functions runs user-defined functions.
	Functions *Functions
	// ReadOnly refuses every write of a replicated table with 25006, and
	// PrivateReadOnly those of private tables.
	ReadOnly, PrivateReadOnly bool
	// Interrupted is asked now and then in local queries: a non-nil error
	// (57014) ends them. Nil in a contract, which nothing interrupts.
	Interrupted func() error
	// WorkMem is how many logical bytes one node of a local query keeps in memory
	// before it goes to disk; 0 = no bound. Contracts have none.
	WorkMem int64
	// Temp is where it goes; nil: nowhere, and WorkMem bounds nothing.
	Temp *TempFiles
	// Role is who runs it: the signer or the user of the session, or the owner of
	// a SECURITY DEFINER function; the zero Role may do everything.
	Role catalog.Role
	// Depth counts nested function calls.
	Depth int
	// Limits bound one transaction; zero fields mean no limit.
	Limits Limits

	held   int64    // logical bytes kept by all programs that run
	idle   []*frame // frames of expressions, by nesting
	nested int      // how many of idle are in use
}

// Limits are deterministic bounds of one transaction; exceeding one is 54000
// (or 54001 for nesting), which no exception handler catches.
type Limits struct {
	ReadBytes, WriteBytes int64
	// Nesting bounds Env.Depth, which the program counts around every call of
	// a user-defined function.
	Nesting int
	// Memory bounds the logical bytes that sorts, hashes, aggregates and WITH
	// queries keep at one time. Exceeding it is 54000 in a contract and 53200
	// in a local query.
	Memory int64
}

// Functions is how programs call user-defined functions; the language handlers
// stand in layers above.
type Functions struct {
	// Call runs a function that returns one value (or void or a record).
	Call func(env *Env, f *catalog.Func, args []datum.Datum) (datum.Datum, error)
	// CallSet runs a set-returning function, or any function in FROM; emit's
	// slice is only valid during the call. One datum per result column.
	CallSet func(env *Env, f *catalog.Func, args []datum.Datum, emit func(row []datum.Datum) error) error
	// Trigger runs a trigger function and returns its row, nil for null.
	Trigger func(env *Env, f *catalog.Func, call *TriggerCall) ([]datum.Datum, error)
}
