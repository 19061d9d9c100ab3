// Package builtin holds the functions, operators, casts and aggregates of
// pg_catalog, with PostgreSQL's OIDs, and the rules that choose among them.
//
// A [Func] is data: its signature, its volatility and a Go function over
// datums. Functions see nothing but their arguments and the [Ctx] they are
// called with; in a contract that context holds no clock, no session and no
// setting. Whether a contract may call a function is part of the table
// ([Func].Contract), so that the determinism check and the planner agree.
//
// The tables - proc.go, operator.go, cast.go - are PostgreSQL 15's pg_proc,
// pg_operator and pg_cast over the types that exist here, in readable form
// (procRow tells the notation). A row of the function table names its
// implementation as pg_proc.prosrc does; the other files, one subject each,
// hold the implementations in maps by that name, and registry.go links them. A
// function whose implementation is not there yet stays in the table, so that
// calls resolve as in PostgreSQL, and answers 0A000 ([Func.Built]). The
// functions that PostgreSQL does not have - tx_time() and its like, and those
// behind key words such as CURRENT_DATE - have OIDs from 9000 on.
//
// The order of calls for a planner: [SelectCandidate] (or [ResolveOperator]),
// [CastFunc] if the match is not exact, [ResolvePolymorphic] for the types that
// arguments are coerced to, [BindCast] for the coercions, [Func.Spread] for
// VARIADIC "any", then [Func.BindEval], [Func.BindRows] or [Func.NewState].
//
// Determinism: no function that a contract may call reads a clock, a random
// source, the session or the locale; text is compared by its bytes; letter case
// and character classes come from the Unicode tables of the Go release, which
// are part of the engine version; transcendental functions over double
// precision are computed in integers (fixedpoint.go). What takes time or room
// out of proportion to its input spends from [Ctx.Budget].
//
// Where this package knowingly differs from PostgreSQL: transcendental results
// are correctly rounded where a C library's are off by one digit; an interval
// that overflows is an error where PostgreSQL 15 wraps; basic regular
// expressions are not there; syntax errors of path expressions may name another token. PostgreSQL's hash functions
// (hash.go) are there for those who compute with them: the engine has its own.
//
// Overload resolution (resolve.go) follows the chapter "Type Conversion" of
// PostgreSQL's manual and src/backend/parser/parse_func.c. It works on
// [Signature] values, so user-defined functions compete under the same rules.
package builtin
