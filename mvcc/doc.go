// Package mvcc keeps every version of every row, on Pebble, and lets
// transactions read any committed state of them.
//
// # Layout
//
// A key is opaque bytes that the SQL layer makes: table, index, key columns in
// an order-preserving form. A version of it is one Pebble record:
//
//	key                              suffix, newest first        value
//	+--------+--------+-----------+  +---------+---------+       +-------+-----+-----+
//	| table  | index  | columns.. |  | block 9 | seq 2   |       | flags | xid | row |   live
//	| table  | index  | columns.. |  | block 7 | seq 31  |       |   D   | xid |     |   deletion
//	| table  | index  | columns.. |  | block 4 | seq 1   |       | flags | xid | row |
//	+--------+--------+-----------+  +---------+---------+       +-------+-----+-----+
//	                                      |
//	    snapshot (7, 31) sees this one ---+   and so no row; (7, 30) sees the one of block 4
//
// Table id zero belongs to the engine, which keeps the format number, the height
// and the named records of [BlockBatch.SetMeta] there.
//
// A version is written once and never touched again: its creator is in its
// suffix and value, and its deleter is the creator of the next newer version. A
// [Snapshot] is a place in the chain, (block, sequence); it sees of each key the
// newest version at or before that place. Later blocks only add versions it does
// not see, so that a reader needs no lock and no Pebble snapshot, and a
// transaction may run for as long as it likes while blocks are committed.
//
// Suffix order and columnar layout are those of pebble/v2/cockroachkvs. Bloom
// filters are over keys without suffix. Every piece of an sstable knows the range
// of blocks in it; [Store.Changed] and [Txn.Versions] pass over what lies outside
// the blocks they are asked about.
//
// # Order of calls
//
//	t := s.Begin(AsOf(h), xid)          // many at once
//	t.Get, t.Scan, t.Put, ...           // reads are recorded, writes buffered
//	t.Close()                           // iterators go, writes and footprint stay
//
//	b := s.NewBlockBatch(s.Height()+1)
//	s.Changed(t.Footprint(), h, s.Height())
//	b.Apply(t, seq)                     // winners, in commit order
//	u := b.Begin(Snapshot{b.Height(), seq}, xid)
//	...; u.Close(); b.Apply(u, seq+1)   // system phase and re-execution
//	b.SetMeta(...)
//	s.Commit(b, false)                  // one atomic Pebble batch
//
// # Invariants
//
//   - Height and rows change together: a crash leaves the state after some whole
//     block, at least the last one committed with sync.
//   - What a Txn reads, counts and records is a function of its snapshot, of the
//     block batch it began on and of the calls made on it. The head cache, a
//     bounded cache of newest versions, changes only how long a read takes; see
//     headCache for why it is right under concurrent commits.
//   - Every failure is an error. Bytes that are no version of ours are
//     reported where they are met. After a failed Commit the store accepts no
//     other block.
//
// The package knows neither SQL nor verdicts: it says what changed, not who
// aborts. Nothing is pruned yet: all versions are kept.
package mvcc
