package system

import "github.com/oasisprotocol/curve25519-voi/curve"

// usableKey reports whether signatures by a key can verify and mean something:
// the bytes decompress to a point of the curve, as package identity demands,
// and the point is not of small order, or signatures could be made without any
// private key.
func usableKey(key [32]byte) bool {
	compressed := curve.CompressedEdwardsY(key)
	point, err := curve.NewEdwardsPoint().SetCompressedY(&compressed)
	return err == nil && !point.IsSmallOrder()
}
