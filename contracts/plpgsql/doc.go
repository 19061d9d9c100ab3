// Package plpgsql compiles and runs functions written in PL/pgSQL.
//
// [Compile] parses a body once per version of a function: the block structure
// with a recursive-descent parser over PostgreSQL's own scanner, the SQL inside
// it with PostgreSQL's own grammar. Names of variables are resolved then, as
// far as that is possible without a catalog.
//
// A [Function] is run against one catalog at a time. For each catalog it makes
// a program once: types are resolved, statements become Go closures over a
// frame of variables. The SQL in them is planned on first execution, as
// PostgreSQL does, and kept with the program; a plan that reads the fields of a
// RECORD variable is made again when the variable holds another row type.
// Programs are shared by all goroutines; plans are published with atomic
// pointers. Whether a plan was found or made leaves no trace: results, errors
// and footprint are those of the text.
//
// Variables live in one array of datums per call, which is also the parameter
// vector of the expressions and statements: reading a variable copies nothing.
//
// An EXCEPTION clause makes its block a subtransaction: writes are undone,
// reads stay in the footprint, because they decided what happened. Handlers see
// the transaction's own errors only, never a fault of the node, an exceeded
// limit or a conflict.
//
// [Function.Inspect] shows all SQL of a function, planned, to tools that ask what
// it does; Options.Verify is asked about each piece, dynamic SQL included, when
// it is planned for execution. The rules for contracts are not of this package.
//
// The package follows src/pl/plpgsql/src of PostgreSQL 15 in what is accepted
// and in the wording and context of errors. Triggers, transaction control,
// scrollable cursors and polymorphic functions are refused when a function is
// compiled.
package plpgsql
