// Package parse reads SQL text with PostgreSQL's own grammar (libpg_query).
//
// It adds what the rest of the project wants to know: where each statement of
// a script begins and ends, syntax errors as PostgreSQL reports them (SQLSTATE
// 42601, position in characters), and bounds on size and nesting that keep bad
// input from hurting the server.
package parse
