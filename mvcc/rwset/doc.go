// Package rwset describes what a transaction read and wrote: its footprint.
//
// Keys are opaque bytes: relation, index and order-preserving key columns as
// mvcc lays them out, without the version suffix. Two keys of one index never
// are prefixes of each other. A span is half open in that byte order, which is
// enough to say every bound of a SQL predicate exactly: the successor of a key
// k is k followed by a zero byte, so an inclusive upper bound k is written as
// the exclusive bound k\x00, and the end of a prefix p as [PrefixEnd](p).
//
// A read may be for existence only (uniqueness and foreign-key checks): then
// only a change between live and deleted invalidates it, not a new version of
// a row that stays alive.
//
// A footprint is data. ssi decides over footprints and mvcc answers which keys
// of one changed in a range of blocks; neither knows the other.
package rwset
