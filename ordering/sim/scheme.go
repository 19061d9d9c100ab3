package sim

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tallystick/tallystick/identity"
)

// scheme stands in for Ed25519: a signature is a hash over a secret that only its
// owner's code gets to use. Verification knows all secrets, and is a hundred
// times as fast.
type scheme struct {
	secrets map[identity.PublicKey][32]byte
}

// member makes the key of a member; keys are in ascending order.
func (s *scheme) member(i int) identity.PublicKey {
	var key identity.PublicKey
	binary.BigEndian.PutUint16(key[:], uint16(i))
	s.secrets[key] = sha256.Sum256(append([]byte("secret"), key[:]...))
	return key
}

func (s *scheme) sign(key identity.PublicKey, digest []byte) identity.Signature {
	var buf [64]byte
	secret, ok := s.secrets[key]
	if !ok || len(digest) != 32 {
		return identity.Signature{}
	}
	copy(buf[:32], secret[:])
	copy(buf[32:], digest)
	sum := sha256.Sum256(buf[:])
	var sig identity.Signature
	copy(sig[:], sum[:])
	sig[63] = 1
	return sig
}

func (s *scheme) signer(key identity.PublicKey) func([32]byte) identity.Signature {
	return func(digest [32]byte) identity.Signature { return s.sign(key, digest[:]) }
}

// check is an ordering.SignatureCheck.
func (s *scheme) check(items []identity.Item, ok []bool) bool {
	all := true
	for i := range items {
		ok[i] = items[i].Signature != identity.Signature{} && s.sign(items[i].Key, items[i].Message) == items[i].Signature
		all = all && ok[i]
	}
	return all
}
