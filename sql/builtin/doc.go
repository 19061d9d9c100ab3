// Package builtin holds the functions, operators, casts and aggregates of
// pg_catalog, with PostgreSQL's OIDs, and the rules that choose among them.
//
// A [Func] is data: its signature, its volatility and a Go function over
// datums. Functions see nothing but their arguments and the [Ctx] they are
// called with; in a contract that context holds no clock, no session and no
// setting. Whether a contract may call a function is part of the table
// ([Func].Contract), so that the determinism check and the planner agree.
//
// Overload resolution (resolve.go) follows the chapter "Type Conversion" of
// PostgreSQL's manual and src/backend/parser/parse_func.c. It works on
// [Signature] values, so user-defined functions compete under the same rules.
package builtin
