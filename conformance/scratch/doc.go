// Package scratch starts servers for one run of a comparison: a PostgreSQL 15
// cluster and a Tallystick development network, each in a directory of its own
// that goes away with it, both with a superuser or admin called [User].
//
// PostgreSQL refuses to run as root; the cluster then belongs to the system's
// user postgres.
package scratch

// User is who the comparisons connect as.
const User = "admin"
