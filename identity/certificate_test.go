package identity

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// orderers makes a set of n orderers and their signers in the order of the
// set.
func orderers(n, quorum int) (*OrdererSet, []*Signer) {
	signers := make([]*Signer, n)
	for i := range signers {
		signers[i] = testSigner(byte(i))
	}
	slices.SortFunc(signers, func(a, b *Signer) int {
		ka, kb := a.Public(), b.Public()
		return bytes.Compare(ka[:], kb[:])
	})
	set := &OrdererSet{Quorum: quorum}
	for _, s := range signers {
		set.Keys = append(set.Keys, s.Public())
	}
	return set, signers
}

func TestVerifyCertificate(t *testing.T) {
	network, hash := [32]byte{1}, [32]byte{2}
	set, signers := orderers(4, 3)
	vote := func(member int, view uint64) Vote {
		d := VoteDigest(network, view, hash)
		return Vote{Member: uint16(member), Signature: signers[member].Sign(d[:])}
	}
	foreign := vote(2, 5)
	foreign.Member = 3
	outside := vote(3, 5)
	outside.Member = 4
	tests := []struct {
		name  string
		votes []Vote
		want  string // "" for valid
	}{
		{"quorum", []Vote{vote(0, 5), vote(1, 5), vote(3, 5)}, ""},
		{"all", []Vote{vote(0, 5), vote(1, 5), vote(2, 5), vote(3, 5)}, ""},
		{"too few", []Vote{vote(0, 5), vote(1, 5)}, "quorum"},
		{"none", nil, "1 to"},
		{"one twice", []Vote{vote(0, 5), vote(1, 5), vote(1, 5)}, "distinct"},
		{"unsorted", []Vote{vote(1, 5), vote(0, 5), vote(2, 5)}, "ascending"},
		{"another view", []Vote{vote(0, 5), vote(1, 5), vote(2, 4)}, "orderer 2"},
		{"another member's", []Vote{vote(0, 5), vote(1, 5), foreign}, "orderer 3"},
		{"a bad one beside a quorum", []Vote{vote(0, 5), vote(1, 5), vote(2, 5), foreign}, "orderer 3"},
		{"no member", []Vote{vote(0, 5), vote(1, 5), outside}, "names orderer 4"},
	}
	for _, tt := range tests {
		err := VerifyCertificate(set, network, hash, &Certificate{View: 5, Votes: tt.votes})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	good := &Certificate{View: 5, Votes: tests[0].votes}
	if err := VerifyCertificate(set, [32]byte{9}, hash, good); err == nil {
		t.Error("a certificate of another network verifies")
	}
	if err := VerifyCertificate(set, network, [32]byte{9}, good); err == nil {
		t.Error("a certificate of another block verifies")
	}
}

func TestOrdererSetValidate(t *testing.T) {
	good, _ := orderers(3, 2)
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for i, k := range good.Keys {
		if good.Index(k) != i {
			t.Errorf("Index of key %d is %d", i, good.Index(k))
		}
	}
	if good.Index(PublicKey{}) != -1 {
		t.Error("a foreign key has an index")
	}
	k := good.Keys
	for name, set := range map[string]*OrdererSet{
		"empty":     {Quorum: 1},
		"quorum 0":  {Keys: k},
		"quorum 4":  {Keys: k, Quorum: 4},
		"unsorted":  {Keys: []PublicKey{k[1], k[0]}, Quorum: 1},
		"duplicate": {Keys: []PublicKey{k[0], k[0]}, Quorum: 1},
		"too many":  {Keys: make([]PublicKey, MaxOrderers+1), Quorum: 1},
	} {
		if set.Validate() == nil {
			t.Errorf("%s: valid", name)
		}
	}
}

func FuzzDecodeCertificate(f *testing.F) {
	_, signers := orderers(2, 1)
	c := &Certificate{View: 3, Votes: []Vote{{Member: 0, Signature: signers[0].Sign(nil)}, {Member: 1}}}
	f.Add(c.Encode())
	f.Add((&Certificate{Votes: c.Votes[:1]}).Encode())
	f.Add((&Certificate{}).Encode())
	f.Add(append(c.Encode(), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeCertificate(b)
		if err == nil && !bytes.Equal(c.Encode(), b) {
			t.Errorf("%x re-encodes as %x", b, c.Encode())
		}
	})
}

func TestDecodeCertificate(t *testing.T) {
	_, signers := orderers(2, 1)
	c := &Certificate{View: 1 << 40, Votes: []Vote{{Member: 0, Signature: signers[0].Sign(nil)}, {Member: 700}}}
	b := c.Encode()
	got, err := DecodeCertificate(b)
	if err != nil || got.View != c.View || !slices.Equal(got.Votes, c.Votes) {
		t.Fatalf("%+v, %v", got, err)
	}
	for n := range b {
		if _, err := DecodeCertificate(b[:n]); err == nil {
			t.Errorf("a prefix of %d bytes is accepted", n)
		}
	}
	bad := map[string]*Certificate{
		"no votes": {},
		"order":    {Votes: []Vote{{Member: 2}, {Member: 1}}},
		"twice":    {Votes: []Vote{{Member: 1}, {Member: 1}}},
		"too many": {Votes: make([]Vote, MaxOrderers+1)},
	}
	for name, c := range bad {
		if _, err := DecodeCertificate(c.Encode()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	b[0]++
	if _, err := DecodeCertificate(b); err == nil {
		t.Error("another version is accepted")
	}
}
