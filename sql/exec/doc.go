// Package exec runs plans over mvcc transactions.
//
// [Compile] turns a [plan.Plan] into a [Program]: expressions become Go
// closures over a frame of slots, nodes become row iterators. A Program is
// immutable and shared by all goroutines; what changes while it runs lives in
// the [Cursor] that Open makes.
//
// The order of rows is defined everywhere: scans give key order, joins the
// order of their outer side, groups and distinct rows the order of first
// appearance, sorts are stable. Errors are of two kinds: *pgerr.Error is the
// statement's own fault and the same on every node; anything else is a fault
// of the node and must stop it.
//
// Rows that a cursor returns live until the next call; datums in them are
// immutable and may be kept.
package exec
