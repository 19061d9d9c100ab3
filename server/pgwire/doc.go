// Package pgwire speaks PostgreSQL's wire protocol, version 3, to psql, drivers
// and every other client that knows PostgreSQL.
//
// It is what src/backend/tcop/postgres.c is to PostgreSQL: it knows messages,
// portals and the order in which answers go out, and nothing of SQL. Each
// connection has a goroutine and a [sql.Session]; the message structures come
// from pgproto3.
//
// # Invariants
//
//   - One goroutine reads a connection, drives its session and writes the
//     answers. Only cancellation and shutdown reach a connection from outside,
//     and they only cancel a context or wake a read.
//   - Whatever a client sends, the server lives. A message that breaks the
//     protocol ends its connection with SQLSTATE 08P01; a panic inside a
//     statement is logged with its stack, answered with XX000, and ends that
//     connection alone.
//   - Nothing is allocated on the word of a client: a message buffer grows with
//     the bytes that arrive, not with the length that was announced.
//   - Answers are collected and written at ReadyForQuery, at Flush, after an
//     error that a pipeline may be waiting for, and whenever the buffer is full.
//   - Rows are encoded from datums straight into the output buffer, without an
//     allocation per row.
//
// # Order of calls
//
// [New], then [Server.Serve] once for every listener, then [Server.Shutdown].
// For a connection: Config.Authenticate, Config.NewSession, the messages, and
// the session's Close.
//
// # What it is not
//
// It neither signs nor submits transactions (that is what the session's options
// are for), does not decide what a user may do, and does not keep settings.
// Where it frames messages itself rather than through pgproto3.Backend, that is
// because PostgreSQL bounds each kind of message separately and refuses an
// unknown kind before reading its body.
package pgwire
