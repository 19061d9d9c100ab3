package block

import (
	"testing"

	"github.com/tallystick/tallystick/identity"
)

func testLeaves(n int) []Hash {
	leaves := make([]Hash, n)
	for i := range leaves {
		leaves[i] = identity.Digest("test/leaf", []byte{byte(i), byte(i >> 8)})
	}
	return leaves
}

// naiveRoot builds the tree level by level: pairs are joined, and what is left
// over moves up. For the shape of RFC 9162 that gives the same root.
func naiveRoot(level []Hash) Hash {
	if len(level) == 0 {
		return identity.Digest(domainNode)
	}
	for len(level) > 1 {
		var up []Hash
		for i := 0; i+1 < len(level); i += 2 {
			up = append(up, identity.Digest(domainNode, level[i][:], level[i+1][:]))
		}
		if len(level)%2 == 1 {
			up = append(up, level[len(level)-1])
		}
		level = up
	}
	return level[0]
}

func TestMerkleRootAgainstLevels(t *testing.T) {
	for n := range 70 {
		if leaves := testLeaves(n); MerkleRoot(leaves) != naiveRoot(leaves) {
			t.Errorf("%d leaves: roots differ", n)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33} {
		leaves := testLeaves(n)
		root := MerkleRoot(leaves)
		for i := range n {
			path := MerklePath(leaves, i)
			if !VerifyPath(root, leaves[i], i, n, path) {
				t.Fatalf("leaf %d of %d: the path does not verify", i, n)
			}
			for j := -1; j <= n; j++ {
				if j != i && VerifyPath(root, leaves[i], j, n, path) {
					t.Errorf("leaf %d of %d passes for leaf %d", i, n, j)
				}
			}
			if other := leaves[(i+1)%n]; n > 1 && VerifyPath(root, other, i, n, path) {
				t.Errorf("another leaf passes for leaf %d of %d", i, n)
			}
			if VerifyPath(root, leaves[i], i, n, append(path[:len(path):len(path)], root)) {
				t.Errorf("leaf %d of %d: a longer path verifies", i, n)
			}
			for k := range path {
				bad := append([]Hash(nil), path...)
				bad[k][0] ^= 1
				if VerifyPath(root, leaves[i], i, n, bad) || VerifyPath(root, leaves[i], i, n, path[:k]) {
					t.Errorf("leaf %d of %d: a changed or cut path verifies", i, n)
				}
			}
		}
	}
}

// TestNodeIsNoLeaf shows that an inner node cannot be sold as a leaf of a
// smaller tree with the same root.
func TestNodeIsNoLeaf(t *testing.T) {
	o := Outcome{Status: Committed}
	copy(o.ID[:], "some transaction")
	leaf := o.Leaf()
	node := nodeHash(&leaf, &leaf)
	if identity.Digest(domainLeaf, leaf[:], leaf[:]) == node {
		t.Error("leaf and node hashes are not separated")
	}
}
