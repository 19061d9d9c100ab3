package identity

import (
	"crypto"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"io"

	voi "github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
)

// PublicKey is the encoding of an Ed25519 public key, 32 bytes as received. It
// is compared as bytes: two encodings of one point are two keys.
type PublicKey [32]byte

// String returns the key in hexadecimal.
func (k PublicKey) String() string { return hex.EncodeToString(k[:]) }

// ParsePublicKey reads the hexadecimal form. It does not check that the bytes
// are a curve point: a key that is none verifies no signature.
func ParsePublicKey(s string) (PublicKey, error) {
	var k PublicKey
	if len(s) != 2*len(k) {
		return PublicKey{}, fmt.Errorf("identity: a public key has %d hexadecimal digits, got %d", 2*len(k), len(s))
	}
	if _, err := hex.Decode(k[:], []byte(s)); err != nil {
		return PublicKey{}, fmt.Errorf("identity: public key: %w", err)
	}
	return k, nil
}

// Signature is an Ed25519 signature: R, then S, 32 bytes each.
type Signature [64]byte

// Signer holds an Ed25519 private key. It is safe for concurrent use. The zero
// value is unusable.
type Signer struct {
	key    ed25519.PrivateKey
	public PublicKey
}

// NewSigner makes the signer of a 32-byte RFC 8032 private key.
func NewSigner(seed [32]byte) *Signer {
	return newSigner(ed25519.NewKeyFromSeed(seed[:]))
}

// GenerateSigner makes a signer from 32 bytes of rand, which should be
// crypto/rand.Reader outside of tests.
func GenerateSigner(rand io.Reader) (*Signer, error) {
	var seed [32]byte
	if _, err := io.ReadFull(rand, seed[:]); err != nil {
		return nil, fmt.Errorf("identity: generating a key: %w", err)
	}
	return NewSigner(seed), nil
}

func newSigner(key ed25519.PrivateKey) *Signer {
	s := &Signer{key: key}
	copy(s.public[:], key[ed25519.SeedSize:])
	return s
}

// Public returns the public key.
func (s *Signer) Public() PublicKey { return s.public }

// Sign signs msg, normally a [Digest]. The signature is the one of RFC 8032, a
// function of key and message; the library that verifies makes it in about
// half the time of crypto/ed25519.
func (s *Signer) Sign(msg []byte) Signature {
	var sig Signature
	copy(sig[:], voi.Sign(voi.PrivateKey(s.key), msg))
	return sig
}

// Crypto is the key as crypto/x509 and crypto/tls take it: what they sign are
// certificates and handshakes, never a [Digest].
func (s *Signer) Crypto() crypto.Signer { return s.key }
