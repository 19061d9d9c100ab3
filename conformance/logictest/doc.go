// Logictest runs scripts in the format of sqllogictest, SQLite's suite of
// statements and queries with expected results, against this engine: in
// process, each script on a database of its own, in schema private.
//
//	logictest [-dir DIR] [-v]
//
// DIR holds scripts, *.test at any depth; the ones of this package are in
// testdata, other people's are read from wherever they lie.
//
// A script is records, separated by blank lines; lines with # are comments:
//
//	statement ok|error
//	SQL
//
//	query TYPES [nosort|rowsort|valuesort] [LABEL]
//	SQL
//	----
//	one value a line, or: N values hashing to MD5
//
//	hash-threshold N    results of more values are shown by their hash
//	halt                the script ends here
//
// TYPES has a letter for each column: I shows a value as an integer, R as a
// number with three decimals, T as text. NULL is shown as NULL, an empty text
// as (empty), a byte of a text that ASCII cannot print as @. Queries with one
// label have one result. "skipif DB" and "onlyif DB" before a record leave it
// out or run it alone for the system DB, which here is postgresql.
package main
