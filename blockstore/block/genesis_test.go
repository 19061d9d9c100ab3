package block

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/identity"
)

func TestGenesisRoundTrip(t *testing.T) {
	g := sampleGenesis()
	got, err := DecodeGenesis(bytes.Clone(g.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if got.NetworkID() != g.NetworkID() || !bytes.Equal(got.Encode(), g.Encode()) {
		t.Error("id or bytes changed")
	}
	got.raw, got.id = nil, Hash{}
	if !reflect.DeepEqual(got, g) {
		t.Errorf("fields changed: %+v, were %+v", got, g)
	}
}

func TestGenesisOneEncoding(t *testing.T) {
	raw := sampleGenesis().Encode()
	id := sampleGenesis().NetworkID()
	for i := range raw {
		for bit := range 8 {
			in := bytes.Clone(raw)
			in[i] ^= 1 << bit
			g, err := DecodeGenesis(bytes.Clone(in))
			if err != nil {
				if !errors.Is(err, ErrMalformed) {
					t.Fatalf("error of another kind: %v", err)
				}
				continue
			}
			if g.NetworkID() == id {
				t.Fatalf("byte %d is not hashed", i)
			}
			g.raw = nil
			if !bytes.Equal(g.Encode(), in) {
				t.Fatalf("accepted bytes encode to others:\n%x\n%x", in, g.Encode())
			}
		}
		if _, err := DecodeGenesis(raw[:i]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("a prefix of %d bytes: %v", i, err)
		}
	}
}

func TestGenesisSort(t *testing.T) {
	g := sampleGenesis()
	g.Orderers.Keys = append(g.Orderers.Keys, testSigner(6).Public(), testSigner(7).Public())
	g.Sort()
	want := g.NetworkID()
	slices.Reverse(g.Orgs)
	slices.Reverse(g.Orgs[0].Users)
	slices.Reverse(g.Orderers.Keys)
	if g.Validate() == nil {
		t.Error("an unsorted genesis is valid")
	}
	g.Sort()
	if err := g.Validate(); err != nil || g.NetworkID() != want {
		t.Errorf("sorting does not restore it: %v", err)
	}
}

func TestGenesisValidate(t *testing.T) {
	for name, change := range map[string]func(*Genesis){
		"network":         func(g *Genesis) { g.Network = "" },
		"timestamp":       func(g *Genesis) { g.Timestamp = -1 },
		"no orgs":         func(g *Genesis) { g.Orgs = nil },
		"org name":        func(g *Genesis) { g.Orgs[0].Name = "Buyer" },
		"org twice":       func(g *Genesis) { g.Orgs[1].Name = "buyer" },
		"user name":       func(g *Genesis) { g.Orgs[0].Users[0].Name = "" },
		"user twice":      func(g *Genesis) { g.Orgs[0].Users[1].Name = "admin" },
		"role":            func(g *Genesis) { g.Orgs[0].Users[1].Role = 0 },
		"no admin":        func(g *Genesis) { g.Orgs[0].Users[0].Role = identity.Client },
		"no orderer":      func(g *Genesis) { g.Orderers.Keys = nil },
		"quorum":          func(g *Genesis) { g.Orderers.Quorum = 2 },
		"flow":            func(g *Genesis) { g.Params.Flow = "" },
		"rule":            func(g *Genesis) { g.Params.Rule = "none" },
		"conflicts":       func(g *Genesis) { g.Params.Conflicts = FlowOrderThenExecute },
		"orderer":         func(g *Genesis) { g.Params.Orderer = "kafka" },
		"block txs":       func(g *Genesis) { g.Params.BlockTxs = MaxTxsPerBlock + 1 },
		"block bytes":     func(g *Genesis) { g.Params.BlockBytes = MaxBlockBytes },
		"engine version":  func(g *Genesis) { g.Params.EngineVersion = 0 },
		"validity window": func(g *Genesis) { g.Params.ValidityWindow = 0 },
		"write bytes":     func(g *Genesis) { g.Params.MaxBlockWriteBytes = g.Params.MaxWriteBytes - 1 },
	} {
		g := sampleGenesis()
		change(g)
		if _, err := g.Block(); err == nil {
			t.Errorf("%s: valid", name)
		}
		if _, err := DecodeGenesis(g.Encode()); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: its bytes decode: %v", name, err)
		}
	}
}

func TestDefaultParamsAreValid(t *testing.T) {
	p := DefaultParams()
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}
