// Package e2e runs the built program the way its users do: a process with a
// data directory, psql and pgbench as clients, SIGTERM and kill -9.
//
// [Main] builds the program once for a test binary. [Start] runs
// `tallystick dev` on a free port and waits for its line beginning "ready";
// a [Node] can be killed, stopped and started again on the same data.
// [Transcripts] replays psql sessions from files and compares what psql prints.
//
// The package knows the command line, the wire protocol and nothing of the
// program's insides: it imports no other package of the module. It is for
// tests only, and it needs psql and pgbench of PostgreSQL 15.
package e2e
