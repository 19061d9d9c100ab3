package identity

import (
	"bytes"
	"strings"
	"testing"
)

func TestVerifyCommits(t *testing.T) {
	network, batch := [32]byte{1}, [32]byte{2}
	set, signers := orderers(4, 3)
	vote := func(member int, view uint64, c Commit) Vote {
		d := CommitDigest(network, view, c)
		return Vote{Member: uint16(member), Signature: signers[member].Sign(d[:])}
	}
	at := Commit{Sequence: 7, Batch: batch, Proposed: 1000}
	later := at
	later.Proposed++
	cert := func(votes ...Vote) *Certificate {
		return &Certificate{Kind: CommitVotes, View: 3, Proposed: 1000, Votes: votes}
	}
	good := cert(vote(0, 3, at), vote(1, 3, at), vote(3, 3, at))
	if err := VerifyCommits(set, network, 7, batch, good); err != nil {
		t.Fatal(err)
	}
	bad := map[string]*Certificate{
		"too few":       cert(vote(0, 3, at), vote(1, 3, at)),
		"mixed views":   cert(vote(0, 3, at), vote(1, 3, at), vote(2, 2, at)),
		"another time":  cert(vote(0, 3, at), vote(1, 3, at), vote(2, 3, later)),
		"block's votes": {Kind: BlockVotes, View: 3, Votes: good.Votes},
	}
	for name, c := range bad {
		if VerifyCommits(set, network, 7, batch, c) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if VerifyCommits(set, network, 8, batch, good) == nil || VerifyCommits(set, network, 7, [32]byte{3}, good) == nil ||
		VerifyCommits(set, [32]byte{9}, 7, batch, good) == nil {
		t.Error("a certificate holds for something else")
	}
	if err := VerifyCertificate(set, network, batch, good); err == nil || !strings.Contains(err.Error(), "kind") {
		t.Errorf("commits pass as votes for a block: %v", err)
	}

	raw := good.Encode()
	back, err := DecodeCertificate(raw)
	if err != nil || !bytes.Equal(back.Encode(), raw) || back.Proposed != 1000 || back.Kind != CommitVotes {
		t.Fatalf("decoded as %+v, %v", back, err)
	}
	for n := range raw {
		if _, err := DecodeCertificate(raw[:n]); err == nil {
			t.Fatalf("the first %d bytes decode", n)
		}
	}
	negative := bytes.Clone(raw)
	negative[9] = 0x80
	if _, err := DecodeCertificate(negative); err == nil {
		t.Error("a negative time decodes")
	}
}
