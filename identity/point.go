package identity

import "github.com/oasisprotocol/curve25519-voi/curve"

// Usable reports whether signatures by the key can verify and mean something:
// its bytes decompress to a point of the curve, and the point is not of small
// order, or signatures could be made without any private key.
func (k PublicKey) Usable() bool {
	compressed := curve.CompressedEdwardsY(k)
	point, err := curve.NewEdwardsPoint().SetCompressedY(&compressed)
	return err == nil && !point.IsSmallOrder()
}
