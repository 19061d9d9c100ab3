// Package determinism decides whether a contract gives the same result on every
// node, and whether its reads can be checked for conflicts (RBC section 4.3).
//
// [Function] examines one function and everything it calls against a catalog:
// create_deploytx and submit_deploytx do so with the catalog as it is after the
// whole script, [Verify] is asked again for every statement when it is planned
// for execution, for indexes may have gone since, and because the text of
// dynamic SQL is known only then. Both apply the same rules to the same plans.
//
// # Rules
//
// What is refused, with the name that findings give the rule:
//
//   - refused-function: functions whose result differs between nodes or between
//     now and a replay; builtin.Refusal names what to use instead.
//   - unreplicated-read: schemas private and provenance, pg_catalog and
//     information_schema.
//   - private-function: a call of a function outside of schema blockchain.
//   - system-column: xmin, xmax, creator_block and deleter_block in a condition.
//     They may be part of a result. ctid does not exist.
//   - order: LIMIT, FETCH and OFFSET; first-row: SELECT INTO that is not STRICT,
//     and the result of an SQL function that returns one row; distinct-on:
//     DISTINCT ON; aggregate-order: array_agg, string_agg, the JSON aggregates,
//     and sums and the like of floating point values; array-order: ARRAY(SELECT);
//     window-order: window functions that tell rows equal in PARTITION BY and
//     ORDER BY apart. Each needs an order that is total.
//   - no-index, whole-table, blind-write: reads that no index serves, reads
//     without a condition, UPDATE and DELETE of a whole table.
//   - not-allowed: what the compiler of the function refuses: DDL, temporary
//     tables, COMMIT, ROLLBACK and the like.
//
// Warnings do not keep a function from being deployed: dynamic-sql for EXECUTE,
// which is checked when it is executed, and cannot-plan for a statement that
// would fail when it is reached. A statement that depends on the row type of a
// RECORD variable which only running shows is examined when it is executed.
// A trigger function is examined for every table that has it, when it or its
// trigger is created.
//
// # Total orders
//
// An order is total if no two rows compare equal in it: it contains a unique
// key of the result. Keys are derived from the plan (rows.go): unique indexes
// whose columns are not null, combined over joins; the grouping columns of an
// aggregate; the columns of DISTINCT. Columns that an equality binds to one
// value, or to a column that is in the order, count as contained. A result of
// at most one row needs no order.
//
// # What is allowed although it looks undetermined
//
// A loop over a query, RETURN QUERY, and FETCH from a cursor take all rows or
// some in the order in which the engine delivers them. That order is defined: a
// plan is a function of the catalog and the statement, never of statistics or
// of the number of rows; a scan delivers in the order of its index, a join in
// that of its outer side and then of its inner one, groups and DISTINCT in the
// order of first appearance, and sorts are stable. Two nodes at one height have
// the same catalog, so they see the same order. By the same argument LIMIT
// without ORDER BY would be deterministic; it is refused because the paper
// demands it and because the order would change when an index is added, which
// people do not expect to change results. A loop that depends on order has the
// same weakness, but refusing loops would refuse the language.
//
// Transcendental functions of floating point values are allowed: they are this
// project's own code and do not depend on the processor.
//
// A read of a table's end in the order of an index (ORDER BY key LIMIT n without
// a condition) is allowed: it reads n entries, not the table.
package determinism
