// Package plan turns a parsed statement into a typed plan.
//
// The planner resolves names against a catalog snapshot, types every
// expression by PostgreSQL's rules and chooses access paths. A plan depends on
// the statement, the schema and nothing else: no statistics, no setting, no
// clock; two nodes make the same plan and so read the same keys in the same
// order.
//
// # Slots
//
// One statement has one frame: a flat array of datums that all its nodes
// share. Every column of every FROM item, every computed column and every
// aggregate has a slot of its own, numbered by the planner. A node makes rows
// by filling its slots; an expression reads slots; a join copies nothing. A
// correlated subquery reads the slots of the outer query in the same frame. A
// node that keeps rows (sort, hash, materialize) copies the slots it is told
// to keep and puts them back.
//
// Package exec runs plans. A [Plan] is immutable and shared by all
// goroutines; it names the catalog rows that it was made from (Reads), which
// become part of the footprint of every transaction that runs it.
package plan
