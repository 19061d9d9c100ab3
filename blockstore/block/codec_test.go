package block

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/identity"
)

func TestTxRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 500 {
		tx := randomTx(t, rng)
		got, err := DecodeTx(bytes.Clone(tx.Encode()))
		if err != nil {
			t.Fatalf("%+v: %v", tx, err)
		}
		if got.ID() != tx.ID() || !bytes.Equal(got.Encode(), tx.Encode()) {
			t.Fatal("id or bytes changed")
		}
		// The fields, too: encode them anew, without the bytes that were kept.
		fields := *got
		fields.raw, fields.id = nil, TxID{}
		if !bytes.Equal(fields.Encode(), tx.Encode()) || fields.ID() != tx.ID() || fields.size() != len(tx.Encode()) {
			t.Fatalf("fields changed: %+v, were %+v", got, tx)
		}
		if !reflect.DeepEqual(got.Call.ArgTypes, tx.Call.ArgTypes) || got.User != tx.User || got.Call.Name != tx.Call.Name || got.Call.Schema != tx.Call.Schema {
			t.Fatalf("names changed: %+v, were %+v", got, tx)
		}
	}
}

// TestTxEveryFieldIsSigned changes one field after the other.
func TestTxEveryFieldIsSigned(t *testing.T) {
	base := sampleTx(t)
	seen := map[TxID]string{base.ID(): "base"}
	for name, change := range map[string]func(*Tx){
		"network":    func(tx *Tx) { tx.Network[0]++ },
		"org":        func(tx *Tx) { tx.User.Org = "seller" },
		"user":       func(tx *Tx) { tx.User.Name = "alicf" },
		"user shift": func(tx *Tx) { tx.User = identity.UserID{Org: "buyera", Name: "lice"} },
		"schema":     func(tx *Tx) { tx.Call.Schema += "a" },
		"name":       func(tx *Tx) { tx.Call.Name += "a" },
		"type":       func(tx *Tx) { tx.Call.ArgTypes = []string{"int4", "text", "bytea", "mytype"} },
		"value":      func(tx *Tx) { tx.Call.Args[0].Value = []byte{1} },
		"null":       func(tx *Tx) { tx.Call.Args[1] = Arg{Value: []byte{}} },
		"not null":   func(tx *Tx) { tx.Call.Args[2] = Arg{Null: true} },
		"arguments": func(tx *Tx) {
			tx.Call.Args, tx.Call.ArgTypes = tx.Call.Args[:3], tx.Call.ArgTypes[:3]
		},
		"snapshot":    func(tx *Tx) { tx.Snapshot++ },
		"nonce":       func(tx *Tx) { tx.Nonce[15]++ },
		"time":        func(tx *Tx) { tx.Time++ },
		"valid until": func(tx *Tx) { tx.ValidUntil++ },
		"flags":       func(tx *Tx) { tx.Flags = 0 },
	} {
		tx := sampleTx(t)
		change(tx)
		if err := tx.Sign(testSigner(2)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, ok := seen[tx.ID()]; ok {
			t.Errorf("%s has the id of %s", name, other)
		}
		seen[tx.ID()] = name
	}
	// Another signature is another encoding of the same transaction.
	tx := sampleTx(t)
	if err := tx.Sign(testSigner(9)); err != nil {
		t.Fatal(err)
	}
	if tx.ID() != base.ID() || tx.ContentHash() == base.ContentHash() {
		t.Error("the signature belongs into the content hash and not into the id")
	}
}

func TestTxValidate(t *testing.T) {
	long := strings.Repeat("n", 64)
	for name, change := range map[string]func(*Tx){
		"no org":          func(tx *Tx) { tx.User.Org = "" },
		"upper-case user": func(tx *Tx) { tx.User.Name = "Alice" },
		"no schema":       func(tx *Tx) { tx.Call.Schema = "" },
		"no name":         func(tx *Tx) { tx.Call.Name = "" },
		"long name":       func(tx *Tx) { tx.Call.Name = long },
		"zero byte":       func(tx *Tx) { tx.Call.Name = "a\x00b" },
		"not UTF-8":       func(tx *Tx) { tx.Call.Name = "a\xff" },
		"types":           func(tx *Tx) { tx.Call.ArgTypes = tx.Call.ArgTypes[:1] },
		"empty type":      func(tx *Tx) { tx.Call.ArgTypes[0] = "" },
		"null with value": func(tx *Tx) { tx.Call.Args[0].Null = true },
		"many arguments": func(tx *Tx) {
			tx.Call.Args, tx.Call.ArgTypes = make([]Arg, MaxArgs+1), make([]string, MaxArgs+1)
		},
		"snapshot":      func(tx *Tx) { tx.Snapshot = MaxHeight + 1 },
		"valid until":   func(tx *Tx) { tx.ValidUntil = MaxHeight + 1 },
		"negative time": func(tx *Tx) { tx.Time = -1 },
		"late time":     func(tx *Tx) { tx.Time = MaxTime + 1 },
		"flags":         func(tx *Tx) { tx.Flags = 2 },
		"size":          func(tx *Tx) { tx.Call.Args[0].Value = make([]byte, MaxTxBytes) },
	} {
		tx := sampleTx(t)
		change(tx)
		if err := tx.Sign(testSigner(1)); err == nil {
			t.Errorf("%s: signed", name)
			continue
		}
		if strings.HasPrefix(name, "null") || name == "types" {
			continue // has no encoding of its own
		}
		tx.raw = nil
		if _, err := DecodeTx(tx.Encode()); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: its bytes decode: %v", name, err)
		}
	}
}

// TestLargestTx is on the limit exactly.
func TestLargestTx(t *testing.T) {
	tx := sampleTx(t)
	tx.Call.Args[0].Value = nil
	tx.Call.Args[0].Value = make([]byte, MaxTxBytes-tx.size()-2) // its length takes 3 bytes, not 1
	if err := tx.Sign(testSigner(1)); err != nil {
		t.Fatal(err)
	}
	if n := len(tx.Encode()); n != MaxTxBytes {
		t.Fatalf("has %d bytes", n)
	}
	if _, err := DecodeTx(tx.Encode()); err != nil {
		t.Error(err)
	}
}

// TestOneEncoding flips, cuts and extends; whatever is still accepted must
// encode to exactly the bytes that were accepted, and have another hash.
func TestOneEncoding(t *testing.T) {
	b := sampleBlock(t)
	raw := b.Encode()
	hash := b.Hash()
	check := func(in []byte, unhashed bool) {
		got, err := DecodeBlock(bytes.Clone(in))
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		if !bytes.Equal(got.Encode(), in) || got.EncodedSize() != len(in) {
			t.Fatalf("accepted bytes encode to others:\n%x\n%x", in, got.Encode())
		}
		if (got.Hash() == hash) != unhashed {
			t.Fatalf("hash covers the change: %v, want %v", got.Hash() != hash, !unhashed)
		}
	}
	certificate := len(raw) - len(b.Certificate)
	for i := range raw {
		for bit := range 8 {
			in := bytes.Clone(raw)
			in[i] ^= 1 << bit
			check(in, i >= certificate)
		}
		if _, err := DecodeBlock(raw[:i]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("a prefix of %d bytes: %v", i, err)
		}
	}
	if _, err := DecodeBlock(append(bytes.Clone(raw), 0)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a trailing byte: %v", err)
	}
}

func TestReaderVarint(t *testing.T) {
	for _, tt := range []struct {
		in   []byte
		want string
	}{
		{[]byte{}, "no varint"},
		{[]byte{0x80}, "no varint"},
		{[]byte{0x80, 0x00}, "shortest"},
		{[]byte{0xff, 0x80, 0x00}, "shortest"},
		{bytes.Repeat([]byte{0xff}, 10), "no varint"},
		{append(bytes.Repeat([]byte{0xff}, 9), 2), "no varint"},
		{[]byte{0x65}, "more than 100"},
		{[]byte{0x64}, ""},
	} {
		r := reader{buf: tt.in}
		r.uvarint(100, "v")
		if (r.err == nil) != (tt.want == "") || r.err != nil && !strings.Contains(r.err.Error(), tt.want) {
			t.Errorf("%x: %v, want %q", tt.in, r.err, tt.want)
		}
	}
	for shift := range 64 {
		for _, v := range []uint64{1<<shift - 1, 1 << shift, 1<<shift + 1} {
			b := binary.AppendUvarint(nil, v)
			r := reader{buf: b}
			if got := r.uvarint(1<<64-1, "v"); got != v || r.end() != nil || uvarintLen(v) != len(b) {
				t.Errorf("%d: read as %d, length %d, %v", v, got, uvarintLen(v), r.err)
			}
		}
	}
}

func TestBlockValidate(t *testing.T) {
	genesis, err := sampleGenesis().Block()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Block){
		"genesis":         func(b *Block) { b.Genesis = genesis.Genesis },
		"number":          func(b *Block) { b.Number = MaxHeight + 1 },
		"timestamp":       func(b *Block) { b.Timestamp = -1 },
		"certificate":     func(b *Block) { b.Certificate = make([]byte, MaxCertificateBytes+1) },
		"0 with txs":      func(b *Block) { *b = *genesis; b.Txs = sampleBlock(t).Txs },
		"0 with previous": func(b *Block) { *b = *genesis; b.PrevHash[0] = 1 },
		"0 with cert":     func(b *Block) { *b = *genesis; b.Certificate = []byte{1} },
		"0 with config":   func(b *Block) { *b = *genesis; b.ConfigID[0]++ },
		"0 with time":     func(b *Block) { *b = *genesis; b.Timestamp++ },
		"0 bare":          func(b *Block) { *b = *genesis; b.Genesis = nil },
		"size": func(b *Block) {
			big := sampleTx(t)
			big.Call.Args[0].Value = make([]byte, MaxTxBytes/2)
			if err := big.Sign(testSigner(1)); err != nil {
				t.Fatal(err)
			}
			for range 2 * MaxBlockBytes / MaxTxBytes {
				b.Txs = append(b.Txs, big)
			}
		},
	} {
		b := sampleBlock(t)
		change(b)
		b.sealed = false
		if b.Validate() == nil {
			t.Errorf("%s: valid", name)
		}
		if _, err := DecodeBlock(b.Encode()); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: its bytes decode: %v", name, err)
		}
	}
}

func TestDecodeBlockBoundsAllocation(t *testing.T) {
	b := &Block{Number: 1, Timestamp: 1}
	raw := b.Encode()
	raw = raw[:len(raw)-2] // transaction count, certificate
	raw = binary.AppendUvarint(raw, MaxTxsPerBlock)
	allocated := testing.Benchmark(func(tb *testing.B) {
		for tb.Loop() {
			if _, err := DecodeBlock(raw); err == nil {
				tb.Fatal("accepted")
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 4096 {
		t.Errorf("a count without transactions costs %d bytes", allocated)
	}
}

func TestFollows(t *testing.T) {
	b := sampleBlock(t)
	if err := b.Follows(0, b.PrevHash, b.Timestamp-1); err != nil {
		t.Error(err)
	}
	if b.Follows(1, b.PrevHash, 0) == nil || b.Follows(0, Hash{}, 0) == nil || b.Follows(0, b.PrevHash, b.Timestamp) == nil {
		t.Error("a block follows where it does not link")
	}
}

func TestSeal(t *testing.T) {
	b := sampleBlock(t)
	hash := b.Hash()
	if b.Seal() != hash || b.Hash() != hash || b.Header().Hash() != hash {
		t.Error("sealing changes the hash")
	}
}

func TestXID(t *testing.T) {
	for _, h := range []Height{0, 1, 12345, MaxHeight} {
		for _, p := range []uint32{0, 1, MaxTxsPerBlock} {
			xid := XID(h, p)
			if gh, gp := SplitXID(xid); gh != h || gp != p || int64(xid) < 0 {
				t.Errorf("%d/%d: %d is split into %d/%d", h, p, xid, gh, gp)
			}
		}
	}
}
