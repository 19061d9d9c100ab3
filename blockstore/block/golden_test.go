package block

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tallystick/tallystick/identity"
)

// annotated writes an encoding down a second time, from the description in the
// package comment and with nothing of the package's own encoder, with a
// comment at every field.
type annotated struct {
	bytes []byte
	lines []string
}

func (a *annotated) raw(comment string, b []byte) {
	a.bytes = append(a.bytes, b...)
	a.lines = append(a.lines, fmt.Sprintf("%x # %s", b, comment))
}

func (a *annotated) varint(comment string, v uint64) {
	a.raw(fmt.Sprintf("%s: %d", comment, v), binary.AppendUvarint(nil, v))
}

func (a *annotated) string(comment, s string) {
	a.raw(fmt.Sprintf("%s: %d bytes, %q", comment, len(s), s), append(binary.AppendUvarint(nil, uint64(len(s))), s...))
}

func (a *annotated) time(comment string, v int64) {
	a.raw(fmt.Sprintf("%s: %d", comment, v), binary.BigEndian.AppendUint64(nil, uint64(v)))
}

func annotateTx(tx *Tx) *annotated {
	a := &annotated{}
	a.raw("transaction, version 1", []byte{1})
	a.raw("network id", tx.Network[:])
	a.string("organization", tx.User.Org)
	a.string("user", tx.User.Name)
	a.string("schema", tx.Call.Schema)
	a.string("name", tx.Call.Name)
	a.varint("arguments", uint64(len(tx.Call.Args)))
	for i, arg := range tx.Call.Args {
		a.string("type", tx.Call.ArgTypes[i])
		if arg.Null {
			a.raw("NULL", []byte{0})
			continue
		}
		a.varint("length + 1", uint64(len(arg.Value))+1)
		if len(arg.Value) > 0 {
			a.raw("value", arg.Value)
		}
	}
	a.varint("snapshot", tx.Snapshot)
	a.raw("nonce", tx.Nonce[:])
	a.time("time", tx.Time)
	a.varint("valid until", tx.ValidUntil)
	a.varint("flags", uint64(tx.Flags))
	a.raw("signature", tx.Signature[:])
	return a
}

func annotateBlock(b *Block) *annotated {
	a := &annotated{}
	a.raw("block, version 1", []byte{1})
	a.varint("number", b.Number)
	a.raw("previous hash", b.PrevHash[:])
	a.raw("configuration id", b.ConfigID[:])
	a.time("timestamp", b.Timestamp)
	if b.Genesis == nil {
		a.varint("length of the genesis", 0)
	} else {
		g := annotateGenesis(b.Genesis)
		a.varint("length of the genesis", uint64(len(g.bytes)))
		a.raw("genesis, as in its own file", g.bytes)
	}
	a.varint("transactions", uint64(len(b.Txs)))
	for _, tx := range b.Txs {
		t := annotateTx(tx)
		a.varint("length", uint64(len(t.bytes)))
		a.raw("transaction "+tx.ID().String(), t.bytes)
	}
	a.string("certificate", string(b.Certificate))
	return a
}

func annotateConfigTx(tx *ConfigTx) *annotated {
	c := annotateConfig(tx.Config)
	a := &annotated{}
	a.raw("configuration transaction, version 2", []byte{2})
	a.varint("length of the configuration", uint64(len(c.bytes)))
	a.bytes, a.lines = append(a.bytes, c.bytes...), append(a.lines, c.lines...)
	a.varint("approvals", uint64(len(tx.Approvals)))
	for _, tx := range tx.Approvals {
		t := annotateTx(tx)
		a.varint("length", uint64(len(t.bytes)))
		a.bytes, a.lines = append(a.bytes, t.bytes...), append(a.lines, t.lines...)
	}
	return a
}

func annotateConfig(c *Config) *annotated {
	a := &annotated{}
	a.raw("configuration, version 1", []byte{1})
	a.raw("network id", c.Network[:])
	a.varint("number", c.Number)
	a.raw("previous configuration", c.Previous[:])
	a.varint("organizations", uint64(len(c.Orgs)))
	for _, o := range c.Orgs {
		a.string("organization", o.Name)
		a.varint("admins", uint64(len(o.Admins)))
		for _, m := range o.Admins {
			a.string("admin", m.Name)
			a.raw("key", m.Key[:])
		}
	}
	a.varint("orderers", uint64(len(c.Orderers.Keys)))
	for _, k := range c.Orderers.Keys {
		a.raw("key", k[:])
	}
	a.varint("quorum", uint64(c.Orderers.Quorum))
	a.string("protocol", c.Ordering.Protocol)
	a.varint("ordering window", c.Ordering.Window)
	a.varint("block transactions", c.Ordering.BlockTxs)
	a.varint("block bytes", c.Ordering.BlockBytes)
	a.varint("block timeout", c.Ordering.BlockTimeoutMicros)
	return a
}

func annotateGenesis(g *Genesis) *annotated {
	a := &annotated{}
	a.raw("genesis, version 1", []byte{1})
	a.string("network", g.Network)
	a.time("timestamp", g.Timestamp)
	a.varint("organizations", uint64(len(g.Orgs)))
	for _, o := range g.Orgs {
		a.string("organization", o.Name)
		a.varint("users", uint64(len(o.Users)))
		for _, u := range o.Users {
			a.string("user", u.Name)
			a.raw("role "+u.Role.String(), []byte{byte(u.Role)})
			a.raw("key", u.Key[:])
		}
	}
	a.varint("orderers", uint64(len(g.Orderers.Keys)))
	for _, k := range g.Orderers.Keys {
		a.raw("key", k[:])
	}
	a.varint("quorum", uint64(g.Orderers.Quorum))
	p := &g.Params
	a.string("flow", p.Flow)
	a.string("rule", p.Rule)
	a.string("conflicts", p.Conflicts)
	a.string("orderer", p.Orderer)
	a.varint("block transactions", p.BlockTxs)
	a.varint("block bytes", p.BlockBytes)
	a.varint("block timeout", p.BlockTimeoutMicros)
	a.varint("ordering window", p.OrderingWindow)
	a.varint("engine version", p.EngineVersion)
	a.varint("snapshot window", p.SnapshotWindow)
	a.varint("validity window", p.ValidityWindow)
	a.varint("time bound", p.TimeBoundMicros)
	a.varint("reexecute rounds", p.ReexecuteRounds)
	a.varint("checkpoint every", p.CheckpointEvery)
	a.varint("steps", p.MaxSteps)
	a.varint("read bytes", p.MaxReadBytes)
	a.varint("write bytes", p.MaxWriteBytes)
	a.varint("block write bytes", p.MaxBlockWriteBytes)
	a.varint("nesting", p.MaxNesting)
	return a
}

// TestGolden pins the canonical bytes and hashes. A difference is a fork:
// rewrite the files (-rewrite) only with a new format version.
func TestGolden(t *testing.T) {
	datadriven.RunTest(t, "testdata/golden", func(t *testing.T, d *datadriven.TestData) string {
		var a *annotated
		var encoded []byte
		var out strings.Builder
		switch d.Cmd {
		case "tx":
			tx := sampleTx(t)
			a, encoded = annotateTx(tx), tx.Encode()
			fmt.Fprintf(&out, "id %s\n", tx.ID())
		case "config-tx":
			next := configGenesis().Config().Next()
			addBank(next)
			tx := signConfig(t, next, "buyer/admin", "carrier/admin", "seller/admin")
			a, encoded = annotateConfigTx(tx.Config), tx.Encode()
			fmt.Fprintf(&out, "id %s\n", tx.ID())
		case "block":
			b := sampleBlock(t)
			a, encoded = annotateBlock(b), b.Encode()
			fmt.Fprintf(&out, "transaction digest %s\nhash %s\n", b.Header().TxDigest, b.Hash())
		case "genesis":
			g := sampleGenesis()
			a, encoded = annotateGenesis(g), g.Encode()
			fmt.Fprintf(&out, "network id %s\n", g.NetworkID())
		case "block-0":
			b, err := sampleGenesis().Block()
			if err != nil {
				t.Fatal(err)
			}
			a, encoded = annotateBlock(b), b.Encode()
			fmt.Fprintf(&out, "transaction digest %s\nhash %s\n", b.Header().TxDigest, b.Hash())
		default:
			d.Fatalf(t, "unknown command %s", d.Cmd)
		}
		if !bytes.Equal(a.bytes, encoded) {
			t.Errorf("%s: the two encoders differ:\n%x\n%x", d.Cmd, a.bytes, encoded)
		}
		return out.String() + strings.Join(a.lines, "\n")
	})
}

// TestHashDefinitions writes the hashes down from their description.
func TestHashDefinitions(t *testing.T) {
	b := sampleBlock(t)
	tx := b.Txs[0]
	raw := tx.Encode()
	id := identity.Digest("tallystick/tx/v1", raw[:len(raw)-64])
	if tx.ID() != id || tx.SigningDigest() != id {
		t.Error("the id is not the digest of everything before the signature")
	}
	if !identity.Verify(testSigner(2).Public(), id[:], tx.Signature) {
		t.Error("the signature is not over the id")
	}
	var hashes []byte
	for _, tx := range b.Txs {
		h := tx.ContentHash()
		hashes = append(hashes, h[:]...)
	}
	txDigest := identity.Digest("tallystick/txs/v1", hashes)
	be := func(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
	hash := identity.Digest("tallystick/block/v1", be(b.Number), txDigest[:], be(uint64(b.Timestamp)), b.PrevHash[:], b.ConfigID[:])
	if b.Hash() != hash {
		t.Error("the block hash is another one")
	}
	b.Certificate = nil
	if b.Hash() != hash {
		t.Error("the block hash covers the certificate")
	}
	g := sampleGenesis()
	if g.NetworkID() != identity.Digest("tallystick/genesis/v1", g.Encode()) {
		t.Error("the network id is another hash")
	}
}
