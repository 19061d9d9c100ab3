// Package cutter decides where a block ends, as a pure machine: whoever drives
// it tells it what arrives and what time it is.
//
// A block is cut when the first of these holds:
//
//   - size: the waiting transactions fill a block, in number or in bytes;
//   - idle: fewer blocks are in flight downstream than the pipeline wants, so
//     that waiting would only add latency. Under load blocks are in flight all
//     the time, and transactions gather meanwhile: blocks grow with the load;
//   - timeout: the first waiting transaction has waited long enough;
//   - a time-to-cut message for this very block. Orderers that agree on a stream
//     of transactions put such messages into the stream; the first one for a
//     block wins and later ones are ignored.
//
// While as many blocks are in flight as the limit allows nothing is cut, and
// transactions wait.
//
// Times are microseconds from any origin that does not run backwards. The order
// of calls: [Cutter.Add], [Cutter.InFlight] and [Cutter.TimeToCut] as things
// happen, after each of them [Cutter.Cut] until it has nothing, then sleep
// until [Cutter.Deadline] and Cut again.
//
// This package starts no timer, sends nothing and knows no consensus; it does
// not look into transactions.
package cutter
