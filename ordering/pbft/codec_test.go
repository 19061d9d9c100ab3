package pbft

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// samples are messages of every kind, with everything in them.
func samples() []ordering.Message {
	raw := (&block.Tx{
		Network: block.Hash{1}, User: identity.UserID{Org: "org", Name: "client"},
		Call: block.Call{Schema: "blockchain", Name: "f"}, ValidUntil: 9,
	}).Encode()
	tx, err := block.DecodeTx(raw)
	if err != nil {
		panic(err)
	}
	txs := []*block.Tx{tx, tx}
	value := identity.Commit{Sequence: 7, Batch: block.Hash{2}, Proposed: 8}
	votes := []identity.Vote{{Member: 0, Signature: identity.Signature{3}}, {Member: 2, Signature: identity.Signature{4}}}
	sig := identity.Signature{5}
	vc := &ViewChange{
		Epoch: 1, Member: 2, View: 3, Stable: 4, StableHash: block.Hash{6}, Proof: votes,
		Prepared: []Prepared{{View: 1, Value: value, Votes: votes}, {View: 2, Value: value}}, Signature: sig,
	}
	return []ordering.Message{
		&PrePrepare{Epoch: 1, View: 2, Value: value, Txs: txs, Signature: sig},
		&Vote{Epoch: 1, Phase: Prepare, View: 2, Value: value, Signature: sig},
		&Vote{Epoch: 1, Phase: Commit, View: 2, Value: value, Signature: sig},
		&Checkpoint{Epoch: 1, Sequence: 8, Hash: block.Hash{7}, Signature: sig},
		vc,
		&ViewChange{View: 1},
		&NewView{Epoch: 1, View: 3, Changes: []*ViewChange{vc, {View: 3}}, Signature: sig},
		&Report{Epoch: 1, View: 2, Changing: true, Height: 5, Durable: 4, Stable: 3, Vote: Checkpoint{Epoch: 1, Sequence: 4, Hash: block.Hash{8}, Signature: sig}},
		&Report{},
		&Forward{Epoch: 1, Txs: txs},
		&Fetch{Epoch: 1, From: 2, Upto: 3},
		&Decided{Epoch: 1, View: 2, Value: value, Votes: votes, Txs: txs},
		&FetchBatch{Epoch: 1, Sequence: 2, Digest: block.Hash{9}},
		&Batch{Epoch: 1, Sequence: 2, Digest: block.Hash{9}, Txs: txs},
		&Stable{Epoch: 1, Sequence: 8, Hash: block.Hash{7}, Votes: votes},
	}
}

// TestCodec: every message survives its encoding, and every prefix of it and every
// byte too many is refused.
func TestCodec(t *testing.T) {
	for _, m := range samples() {
		raw := m.AppendTo(nil)
		back, err := Decode(raw)
		if err != nil {
			t.Errorf("%s: %v", m.Kind(), err)
			continue
		}
		if reflect.TypeOf(back) != reflect.TypeOf(m) || !bytes.Equal(back.AppendTo(nil), raw) {
			t.Errorf("%s: decoded as %+v", m.Kind(), back)
		}
		if epoch, ok := ordering.EpochOf(raw); !ok || epoch != reflect.ValueOf(m).Elem().FieldByName("Epoch").Uint() {
			t.Errorf("%s: epoch %d", m.Kind(), epoch)
		}
		for n := range raw {
			if _, err := Decode(raw[:n]); err == nil {
				t.Errorf("%s: the first %d bytes of %d decode", m.Kind(), n, len(raw))
			}
		}
		if _, err := Decode(append(raw, 0)); err == nil {
			t.Errorf("%s: a byte too many decodes", m.Kind())
		}
	}
}

// FuzzDecode: whatever decodes encodes to the same bytes, and nothing panics, in
// the checks neither.
func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(m.AppendTo(nil))
	}
	members := ordering.Membership{First: 1, Set: identity.OrdererSet{Quorum: 3}}
	for i := range 4 {
		members.Set.Keys = append(members.Set.Keys, testKey(i))
	}
	v := ordering.Verifier{Protocol: Protocol, Members: members, Signatures: testCheck}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Decode(raw)
		if err != nil {
			return
		}
		if again := m.AppendTo(nil); !bytes.Equal(again, raw) {
			t.Fatalf("%s: %x encodes to %x", m.Kind(), raw, again)
		}
		for from := range 4 {
			_, _ = v.VerifyMessage(from, m)
		}
	})
}
