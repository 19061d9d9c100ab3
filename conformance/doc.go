// Package conformance holds what compares Tallystick with suites and systems
// that others wrote. `make conformance` runs it; RESULTS.md has the numbers of
// the last run.
//
//   - regress runs the statements of PostgreSQL's own regression tests on
//     PostgreSQL 15 and on a Tallystick node and compares the answers;
//     declared.txt lists the differences that are intended, with a reason each.
//   - logictest runs scripts in the format of sqllogictest, its own ones or a
//     directory of other people's.
//   - psqlscript splits psql's scripts into statements and commands.
//   - wire is a client of PostgreSQL's protocol that keeps all that a server
//     says about a statement.
//   - scratch starts a PostgreSQL cluster and a Tallystick node for one run.
//
// Nothing that others wrote is part of this tree: it is fetched into build,
// which Git ignores.
package conformance
