// Package blockstore keeps the blocks of a network in append-only segment
// files. For the chain it is the log: a block counts once its record is synced,
// and everything else a node knows can be rebuilt by replaying it.
//
// # Files
//
// A store is a directory:
//
//	LOCK                        held by the one process that has it open
//	pgblockstore-00000000       segment 0: header, records of blocks 0, 1, ...
//	pgblockstore-00000000.index side file of a sealed segment, a cache
//	pgblockstore-00000001       segment 1, ...
//
// Only the last segment is written to; when it would outgrow
// Options.SegmentBytes the next one is begun and the old one is sealed. A
// record is a fixed head (magic, height, length, two CRC-32C) and the canonical
// bytes of a block. All integers are little-endian. The exact layouts are in
// segment.go and index.go.
//
// # Torn tails and corruption
//
// A crash may leave any part of what was written since the last sync. Open cuts
// such a torn tail and reports it in [Recovery]; it never cuts what was durable
// if there is evidence that it was:
//
//   - a segment that is not the last was synced as a whole;
//   - every record states up to which offset the segment was synced when the
//     record was written, so an intact record proves everything before that
//     offset durable.
//
// Damage there is a [CorruptError] that names file, offset and height. CRCs are
// salted with random bytes of the segment's header: neither stale disk blocks
// nor bytes that a client put into a transaction can pass for a record.
//
// What remains open is damage to the very last batch of records, which looks
// like a torn write: those blocks are cut and must be fetched again. CRCs
// guard against accidents; against an attacker with access to the disk there
// are the hash chain and the certificates, which [Verify] checks.
//
// # Order of calls
//
// Open, then any number of Get, FindTx, Iterate and Tip from any goroutine
// beside Append or AppendBatch, which exclude each other; Close. A block
// becomes visible to readers after it was synced. Once a write or sync has
// failed nothing more is appended until the store is opened again: what is on
// the disk is unknown.
//
// # What this package is not
//
// It does not know who may order blocks (Options.Verify does) nor whether
// transactions are valid, and it keeps no state.
package blockstore
