// Package exec runs plans over mvcc transactions.
//
// [Compile] turns a [plan.Plan] into a [Program]: expressions become Go
// closures over a frame of slots, nodes become row iterators. A Program is
// immutable and shared by all goroutines; what changes while it runs lives in
// the [Cursor] that Open makes. [CompileExpr] does the same for an expression
// that stands alone. Iterators and frames are kept from one execution to the
// next, so that a short statement allocates next to nothing.
//
// The order of rows is defined everywhere: scans give key order, joins the
// order of their outer side, groups and distinct rows the order of first
// appearance, sorts are stable. Hashes only narrow a search; equality is always
// that of the type. Errors are of two kinds: *pgerr.Error is the statement's own
// fault and the same on every node; anything else is a fault of the node and
// must stop it. A plan compiles, or not, regardless of the data.
//
// What a program reads is recorded by the transaction, exactly: a key for a
// look-up, a span for a range, and only as far as rows were asked for. Where a
// result depends on nothing but which keys are there (uniqueness, foreign keys,
// count(*)), the existence of rows is read and not their content.
//
// A statement that writes collects the rows it concerns before it changes the
// first one, and runs to its end before it returns a row. Keys, NOT NULL and
// CHECK are verified row by row; foreign keys when the statement ends, cascades
// included. Members of WITH see the tables as they were before the statement.
//
// Local queries that read many rows to make few groups run in the batch engine
// (batch.go), which answers the same in the same order.
//
// Beyond Env.WorkMem the sorts, hash joins, groups, DISTINCT, windows and kept
// rows of a local query go to temporary files (sorter.go, spill*.go, paged.go),
// which changes neither rows nor their order. Contracts keep all in memory, within
// Limits.Memory.
//
// Work is counted in steps (rows made, functions called) and in logical bytes,
// never in time, against the bounds of [Env].
//
// Rows that a cursor returns live until the next call; datums in them are
// immutable and may be kept.
package exec
