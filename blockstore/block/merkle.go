package block

import (
	"math/bits"

	"github.com/tallystick/tallystick/identity"
)

// The outcomes of a block are the leaves of a Merkle tree of the shape of RFC
// 9162: a tree of n > 1 leaves has a left subtree over the largest power of two
// of them below n. Leaves and inner nodes are hashed under different domains,
// so that neither can pass for the other.
const (
	domainLeaf identity.Domain = "tallystick/receipt/v1"
	domainNode identity.Domain = "tallystick/receipt-node/v1"
)

// MaxPath bounds the length of a path: the depth of the tree of a full block.
const MaxPath = PositionBits

func nodeHash(left, right *Hash) Hash {
	return identity.Digest(domainNode, left[:], right[:])
}

// MerkleRoot is the root of a tree of leaves. The root of no leaves is the hash
// of nothing.
func MerkleRoot(leaves []Hash) Hash {
	switch len(leaves) {
	case 0:
		return identity.Digest(domainNode)
	case 1:
		return leaves[0]
	}
	k := split(len(leaves))
	left, right := MerkleRoot(leaves[:k]), MerkleRoot(leaves[k:])
	return nodeHash(&left, &right)
}

// split is the largest power of two below n > 1.
func split(n int) int { return 1 << (bits.Len(uint(n-1)) - 1) }

// MerklePath returns the path of leaf i: the roots of the subtrees beside it, from
// the leaf upwards.
func MerklePath(leaves []Hash, i int) []Hash {
	if len(leaves) <= 1 {
		return nil
	}
	k := split(len(leaves))
	if i < k {
		return append(MerklePath(leaves[:k], i), MerkleRoot(leaves[k:]))
	}
	return append(MerklePath(leaves[k:], i-k), MerkleRoot(leaves[:k]))
}

// VerifyPath reports whether path shows that leaf is the one at position i of
// the n leaves under root.
func VerifyPath(root, leaf Hash, i, n int, path []Hash) bool {
	got, ok := climb(leaf, i, n, path)
	return ok && got == root
}

// climb computes the root that a path leads to, consuming it from its end: the
// last step is the one below the root.
func climb(leaf Hash, i, n int, path []Hash) (Hash, bool) {
	if i < 0 || i >= n {
		return Hash{}, false
	}
	if n == 1 {
		return leaf, len(path) == 0
	}
	if len(path) == 0 {
		return Hash{}, false
	}
	k, beside := split(n), path[len(path)-1]
	if i < k {
		left, ok := climb(leaf, i, k, path[:len(path)-1])
		return nodeHash(&left, &beside), ok
	}
	right, ok := climb(leaf, i-k, n-k, path[:len(path)-1])
	return nodeHash(&beside, &right), ok
}
