// Package chain turns blocks into state: one block in, receipts out.
//
// # Process
//
// [Chain.Process] takes the block after the last one. What comes out - rows,
// statuses, results, the state hash - is a function of the chain of blocks
// alone. The number of workers, caches, what is in flight and when the process
// was restarted have no influence. The stages:
//
//	check    number, link, timestamp, digest and certificate of the block: an
//	         error, never a verdict
//	verify   signatures in a batch, by the keys as of the block before;
//	         repetitions, expiry, snapshot and signed time: rejected
//	execute  all others in parallel, each alone on its snapshot: the block
//	         before in order-then-execute, the signed one in
//	         execute-order-in-parallel, where it may be done already
//	decide   stale or in conflict: aborted; an error of its own: failed; else
//	         it commits, unless the block writes too much
//	apply    the winners' writes, in block order
//	rounds   if the network re-executes: losers again on what there is, by
//	         execute, decide and apply, the last round one after the other
//	system   deploy and user contracts, one after the other on what there is
//	commit   ledger rows, block row and state hash, in one batch with the rest
//
// # Ahead of the block
//
// [Chain.Speculate] executes transactions of execute-order-in-parallel before
// their block comes, [Chain.Preview] also tells what they give. What they find is
// used by Process and is exactly what it would find itself: see Speculate for why.
// Both are bounded, and nothing depends on them. [Chain.Close] ends them.
//
// # Faults
//
// Only errors of the closed class of pgerr.IsVerdict become outcomes. Anything
// else - a disk error, a panic, an exhausted allocation - is returned by
// Process, and no further block is processed: the node must stop. A block is
// committed as a whole or not at all.
//
// # Durability
//
// The block store is the log. A block must be durable there before Process is
// called; the state is not synced with it. [Open] replays the blocks that the
// state does not have.
//
// # Block 0
//
// [Open] of an empty state applies genesis: the users and the row of block 0
// are versions of block 0 with sequence and transaction number 0.
//
// # What this package is not
//
// It knows no ordering service and no clients: package flow stands between
// them. It decides nothing about conflicts, which is package ssi's.
package chain
