// Package identity says who signs: organizations, users, their Ed25519 keys,
// the one rule by which a signature is accepted, and quorum certificates.
//
// # One acceptance rule
//
// Ed25519 implementations disagree about signatures that involve points of
// small order or non-canonical encodings, and a batch equation can only ever
// be checked up to the cofactor. A node that verifies one by one and a node
// that verifies in batches must never disagree: they would fork. [Verify] and
// [BatchVerifier] therefore both follow ZIP-215:
//
//   - A and R may be any encoding that decompresses to a curve point,
//     canonical or not, of any order;
//   - S must be below the group order;
//   - [8][S]B = [8]R + [8][k]A with k = SHA-512(R, A, message) over the bytes
//     as received.
//
// The verdict on an item is a function of that item alone: not of its
// neighbours, of the size of a chunk or of the number of workers.
//
// # What is signed
//
// Every signature of this project is over a [Digest]: SHA-256 over a domain
// and length-prefixed parts, so that a signature given for one purpose is never
// valid for another and no two different inputs hash the same bytes.
//
// # What this package is not
//
// It knows no heights and no registry: which key a user has in which block is
// state of the chain. X.509 certificates and their validity belong to
// connections, not to this package.
package identity
