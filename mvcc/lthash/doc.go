// Package lthash is LtHash16, a hash of multisets to which elements are added
// and from which they are taken away one by one: the digest of a table follows its
// rows at a cost per changed row, whatever the size of the table.
//
// An element is expanded to 1024 integers of 16 bits, and a sum is the sum of its
// elements modulo 2^16, integer by integer. Sums of parts add up to the sum of the
// whole, in any order; that is what makes digests computed by many workers the
// same everywhere, and digests of key ranges checkable against that of their
// table. README.md tells how elements are expanded, what that costs and which
// attacks it withstands.
//
// The package knows nothing about what its elements are.
package lthash
