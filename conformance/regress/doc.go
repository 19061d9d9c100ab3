// Regress runs PostgreSQL's regression tests on PostgreSQL 15 and on a
// Tallystick node and says statement by statement whether they agree.
//
// The scripts are those of src/test/regress, which fetch.sh brings; the
// expected answer is not the one in their expected directory but what
// PostgreSQL 15 itself says to the same statement after the same statements.
// Both servers get the settings of pg_regress. The node's session works on
// schema private, which stands for public.
//
// A statement is
//
//   - equal: same columns, types, rows, command tag, notices, or the same
//     SQLSTATE and message. If it has no ORDER BY the order of rows may differ.
//   - declared: not equal, and declared.txt gives the reason; or it works on an
//     object that a declared statement should have made or changed.
//   - an error: the node refuses what PostgreSQL does.
//   - different: anything else.
//   - excluded: it needs regress.so or other functions in C, by its own words
//     or through an object that it names.
//
// Three things are adapted for the node: the names public and regression (the
// database), and server-side files of COPY, which its client reads and writes
// instead, as \copy does. psql's own commands (\d ...) are counted, not run,
// except those that decide how a script goes on (\set, \gset, \if, \c ...).
package main
