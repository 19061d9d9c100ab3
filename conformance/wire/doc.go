// Package wire is a client of PostgreSQL's protocol for comparing servers: it
// sends one string in the simple protocol and keeps all that the server says
// about it, in order.
//
// A [Conn] is for one goroutine. After an error of the connection itself
// (anything that [Conn.Query] returns as its error) it is of no use any more.
//
// It is no driver: values stay text, and nothing is retried.
package wire
