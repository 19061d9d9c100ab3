// Package block defines the values that organizations agree on - transactions,
// blocks, the genesis of a network - and their canonical bytes.
//
// # One encoding
//
// Every value has exactly one encoding, and a decoder accepts exactly that one:
// shortest varints, no trailing bytes, no unknown flag, everything within the
// limits of limits.go, sorted where an order is defined. Whatever a decoder
// accepts, Encode returns byte for byte.
//
// Integers are unsigned LEB128 varints where they are usually small and 8
// bytes big-endian for timestamps; strings and byte strings are preceded by
// their length as a varint; hashes, keys, nonces and signatures have a fixed
// length. The first byte of every value is its format version.
//
//	transaction  version | network 32 | org | user | schema | name |
//	             argument count | (type name | 0 for NULL, else length + 1 and
//	             the bytes)* | snapshot | nonce 16 | time 8 | valid until |
//	             flags | signature 64
//	configuration transaction
//	             version 2 | length | configuration | approval count |
//	             (length | transaction)*
//	configuration
//	             version | network 32 | number | previous id 32 | org count |
//	             (org | admin count | (admin | key 32)*)* | orderer count |
//	             (key 32)* | quorum | protocol | window | block transactions |
//	             block bytes | block timeout
//	block        version | number | previous hash 32 | configuration id 32 |
//	             timestamp 8 | genesis | transaction count |
//	             (length | transaction)* | certificate
//
// # Hashes
//
// A transaction's id is the tagged hash of everything before its signature, and
// it is also what the signature signs. A block's hash covers number,
// transaction digest, timestamp, previous hash and configuration id and never
// the certificate, which may differ between orderers for one block. The
// transaction digest covers the SHA-256 of every transaction's bytes,
// signatures included. All are computed over the bytes that were received,
// never over a re-encoding.
//
// Block 0 carries the genesis and no transactions. The network id is the tagged
// hash of the genesis; it is the configuration id of block 0 and the id of
// configuration 0.
//
// # Configurations
//
// Who may order, whose admins decide on the network and how blocks are cut stand
// in the [Config], which orderers and nodes read without any state. It changes
// only by a configuration transaction, which stands in a block like others and
// carries the approvals that the configuration before it demands
// ([Config.Verify]): an admin of every organization, except that an organization
// changes its own admins alone, and that who is removed has no veto but then more
// than half have to approve. A configuration is in force from block b + window + 1
// on if its transaction stands in block b; [Schedule] follows that. The header of
// a block names the configuration in force, whose orderers certify it. An approval
// is itself a signed transaction, the vote of an admin ([ApproveConfig]). The id of
// a configuration transaction is that of its configuration.
//
// # Mutability
//
// A transaction that came from [DecodeTx] or was signed, and a block that came
// from [DecodeBlock] or was sealed, must not be changed any more: they hold
// their bytes and hashes. Such values may be read by any number of goroutines.
// Decoded values share memory with the bytes they were decoded from, which
// the caller gives away.
//
// # What this package is not
//
// Decoding checks form only. It verifies no signature and no certificate and
// knows no state: whether a transaction is valid in a block is for the chain to
// say.
package block
