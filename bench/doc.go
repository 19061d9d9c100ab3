// Package bench measures a network: the contracts of the papers and of common
// benchmarks, clients that call them, and reports of throughput, latency,
// aborts and the time of each stage.
//
// A [Workload] is a schema with contracts, what fills it, and a source of
// operations per client. A [Target] carries operations out: [Local] submits
// signed transactions to a node in this process, [Wire] speaks PostgreSQL's
// protocol to a signing endpoint or to any server that has the same functions,
// PostgreSQL itself included. [Run] drives clients in a closed loop (each
// waits for its answer before the next operation) or in an open one (operations
// arrive at a rate, whoever waits).
//
// # Reading the numbers
//
// Latency in the open loop counts from when the operation was due, so that a
// server that stalls cannot hide it. Warm-up is not counted. Clients share the
// machine with the server: in a closed loop signing is part of what is measured
// unless the transactions are signed in advance.
//
// # What it is not
//
// No test depends on how fast anything is; the tests of this package check what
// is counted, and that a workload keeps its invariants.
package bench
