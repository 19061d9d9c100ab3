// Package pgerr is the one error type that a client ever sees: a PostgreSQL
// error report with its SQLSTATE.
//
// The SQLSTATE is attached where an error is raised and never derived from a
// text. The package also knows which codes form the closed class of
// deterministic errors (see [IsVerdict]): those may become the outcome of a
// transaction, the same on every node. Everything else - a disk error, an
// exhausted allocation, a bug - stops a node instead of becoming a verdict.
package pgerr
