package identity

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"testing"
)

// reference is the definition of Digest without its fast path.
func reference(domain Domain, parts ...[]byte) [32]byte {
	var b bytes.Buffer
	b.WriteByte(byte(len(domain)))
	b.WriteString(string(domain))
	for _, p := range parts {
		b.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		b.Write(p)
	}
	return sha256.Sum256(b.Bytes())
}

func TestDigestIsItsDefinition(t *testing.T) {
	for n := range 2 * digestStackBytes {
		p := bytes.Repeat([]byte{7}, n)
		if Digest(DomainTx, p, nil, p[:n/2]) != reference(DomainTx, p, nil, p[:n/2]) {
			t.Fatalf("differs at %d bytes", n)
		}
	}
}

func TestDigestSeparates(t *testing.T) {
	p := func(s string) []byte { return []byte(s) }
	inputs := [][32]byte{
		Digest(DomainTx),
		Digest(DomainTx, nil),
		Digest(DomainTx, nil, nil),
		Digest(DomainTx, p("ab")),
		Digest(DomainTx, p("a"), p("b")),
		Digest(DomainTx, p("ab"), nil),
		Digest(DomainTx, nil, p("ab")),
		Digest(DomainVote, p("ab")),
		Digest(DomainTx[:len(DomainTx)-1], p(string(DomainTx[len(DomainTx)-1:])), p("ab")),
	}
	seen := make(map[[32]byte]int)
	for i, d := range inputs {
		if j, ok := seen[d]; ok {
			t.Errorf("inputs %d and %d collide", i, j)
		}
		seen[d] = i
	}
}

func TestDomainsAreDistinct(t *testing.T) {
	all := []Domain{DomainTx, DomainTxSequence, DomainBlock, DomainGenesis, DomainConfig, DomainVote, DomainConsensus, DomainCheckpoint}
	seen := make(map[Domain]bool)
	for _, d := range all {
		if seen[d] {
			t.Errorf("%s is used twice", d)
		}
		seen[d] = true
	}
}

func BenchmarkDigest(b *testing.B) {
	msg := make([]byte, 196)
	b.ReportAllocs()
	for b.Loop() {
		Digest(DomainTx, msg)
	}
}
