// Package server puts the parts of a node together: the data directory, the
// stores, the engine, the chain, the orderer, the flow and the fronts; their
// start, in order, and their end, in the opposite one.
//
// # Data directory
//
//	LOCK       held by the one process that works on the directory
//	genesis    canonical bytes of the genesis: which network this is
//	keys/      private keys, one file a user: keys/alice.pem
//	blocks/    block store: pgblockstore-*
//	state/     row versions (Pebble), a function of the blocks
//	raft/      log, vote and snapshots of the orderer (--orderer raft only)
//	pbft/      votes of the orderer (--orderer pbft only); without them an orderer
//	           among others does not start again
//	private/   row versions of schema private, which is this node's alone
//
// The block store is the log of what is replicated; the state is rebuilt by
// replay when it is missing. Schema private has no other copy. A state that is ahead of the blocks
// cannot come from a crash, for a block is synced before it is executed: it is
// refused.
//
// # Order of calls
//
// [OpenDev] (which recovers), [Node.Serve] until its context ends or the node
// fails, [Node.Close]. [Verify] works on a directory that no process has open.
//
// # What it is not
//
// It decides nothing about transactions; every rule is in a package below.
package server
