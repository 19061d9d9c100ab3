package server

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/home"
)

// pbftHomes makes the homes of an organization with four PBFT orderers and a node.
func pbftHomes(t *testing.T) string {
	t.Helper()
	dir, now := t.TempDir(), time.Now()
	org, err := home.MakeOrg(dir, home.OrgPlan{Org: "bank", Nodes: 1, Orderers: 4, Host: "127.0.0.1", Port: 20000, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	choices := Choices{Orderer: block.OrdererPBFT}
	g, network, err := home.Combine("net", []*home.Org{org}, choices.Params(), now)
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Join(filepath.Join(dir, "bank"), g, network); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "bank")
}

func memberAt(t *testing.T, org, name string) *Member {
	t.Helper()
	none := func() ([]byte, error) { return nil, nil }
	m, err := OpenMember(filepath.Join(org, name), identity.UserID{Org: "bank", Name: name}, none, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Orderers know each other by the keys of their certificates, and talk to nobody
// else.
func TestIdentifyOrderer(t *testing.T) {
	org := pbftHomes(t)
	server := memberAt(t, org, "orderer1")
	identify := identifyOrderer(server.Verifier)
	for name, accepted := range map[string]bool{"orderer2": true, "node1": false} {
		client := memberAt(t, org, name)
		there, here := net.Pipe()
		go func() {
			c := tls.Client(there, client.Verifier.Client(client.Pair, server.User, identity.Orderer))
			_ = c.Handshake() // the other side says what came of it
			_, _ = c.Read(make([]byte, 1))
			_ = there.Close()
		}()
		key, err := identify(tls.Server(here, server.Verifier.Server(server.Pair, identity.Orderer)))
		_ = here.Close()
		if (err == nil) != accepted || accepted && key != client.Pair.Signer().Public() {
			t.Errorf("%s: key %s, %v", name, key, err)
		}
	}
	plain, other := net.Pipe()
	defer plain.Close()
	defer other.Close()
	if _, err := identify(plain); err == nil {
		t.Error("a connection without TLS is somebody's")
	}
}

// An orderer among others whose votes are gone does not start again.
func TestLostVotes(t *testing.T) {
	dir := t.TempDir()
	there, gone := filepath.Join(dir, "pbft"), filepath.Join(dir, "none")
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		dir      string
		orderers int
		tip      block.Height
		refused  bool
	}{
		{gone, 4, 0, false}, // its first start
		{gone, 4, 1, true},
		{there, 4, 1, false},
		{gone, 1, 1, false}, // nobody to contradict
	} {
		c := &block.Config{Orderers: identity.OrdererSet{Keys: make([]identity.PublicKey, tc.orderers)}}
		err := checkRecords(tc.dir, c, &block.Block{Number: tc.tip})
		if (err != nil) != tc.refused || tc.refused && !strings.Contains(err.Error(), gone) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
