package home

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

var at = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// params are those of a network with some protocol.
func params(protocol string) block.Params {
	p := block.DefaultParams()
	p.Orderer = protocol
	return p
}

// make2 makes two organizations.
func make2(t *testing.T, dir string) []*Org {
	t.Helper()
	var orgs []*Org
	port := 20000
	for _, name := range []string{"supplier", "bank"} {
		plan := OrgPlan{Org: name, Nodes: 2, Orderers: 1, Users: []string{"alice", "bob"}, Host: "127.0.0.1", Hosts: []string{"db.example"}, Port: port, Now: at}
		o, err := MakeOrg(dir, plan)
		if err != nil {
			t.Fatal(err)
		}
		port += plan.Ports()
		orgs = append(orgs, o)
	}
	return orgs
}

func TestMakeCombineJoin(t *testing.T) {
	dir := t.TempDir()
	var published []*Org
	for _, o := range make2(t, dir) {
		read, err := ReadOrg(filepath.Join(dir, o.Name, PublicFile))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(read, o) {
			t.Errorf("read\n%+v\nwritten\n%+v", read, o)
		}
		published = append(published, read)
	}
	g, n, err := Combine("trade", published, params(block.OrdererRaft), at)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Combine("trade", []*Org{published[1], published[0]}, params(block.OrdererRaft), at)
	if err != nil || again.NetworkID() != g.NetworkID() {
		t.Errorf("the order of organizations matters: %v", err)
	}
	if len(g.Orderers.Keys) != 2 || g.Orderers.Quorum != 1 {
		t.Errorf("orderers %+v", g.Orderers)
	}
	for _, o := range published {
		for range 2 { // joining again changes nothing
			if err := Join(filepath.Join(dir, o.Name), g, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	homes, err := NetworkHomes(dir)
	if err != nil || len(homes) != 2*(2+1+3) {
		t.Fatalf("%d homes, %v", len(homes), err)
	}
	for _, h := range homes {
		checkHome(t, h, g, n)
	}
	if _, err := MakeOrg(dir, OrgPlan{Org: "bank", Nodes: 1, Host: "127.0.0.1", Port: 1}); err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("an organization was made twice: %v", err)
	}
}

// checkHome reads everything in a home.
func checkHome(t *testing.T, h Home, g *block.Genesis, n *Network) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.Dir, GenesisFile))
	if err != nil || string(raw) != string(g.Encode()) {
		t.Errorf("%s: genesis: %v", h.Dir, err)
	}
	if read, err := ReadNetwork(filepath.Join(h.Dir, NetworkFile)); err != nil || !reflect.DeepEqual(read, n) {
		t.Errorf("%s: network.toml: %v\n%+v\n%+v", h.Dir, err, read, n)
	}
	info, err := os.Stat(filepath.Join(h.Dir, KeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: key: %v, %v", h.Dir, info.Mode(), err)
	}
	key, err := identity.LoadKey(filepath.Join(h.Dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	registered := false
	for _, o := range g.Orgs {
		for _, u := range o.Users {
			registered = registered || o.Name == h.Org && u.Name == h.Name && u.Key == key.Public()
		}
	}
	if !registered {
		t.Errorf("%s: its key is not in the genesis", h.Dir)
	}
	switch h.Kind {
	case NodeHome:
		c, err := ReadNode(h.Dir)
		if err != nil || c.Name != h.Name || len(c.SQL.Rules) != 2 || c.Data != filepath.Join(h.Dir, "data") {
			t.Errorf("%+v, %v", c, err)
		}
	case OrdererHome:
		if c, err := ReadOrderer(h.Dir); err != nil || c.Org != h.Org {
			t.Errorf("%+v, %v", c, err)
		}
	case UserHome:
		if c, err := ReadWallet(h.Dir); err != nil || c.User != h.Name {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// TestJoinRefuses: whoever combined the network cannot put other keys under an
// organization's name.
func TestJoinRefuses(t *testing.T) {
	dir := t.TempDir()
	orgs := make2(t, dir)
	for name, c := range map[string]struct {
		change func(o *Org)
		want   string
	}{
		"another key": {func(o *Org) { o.Users[0].Key = strings.Repeat("ab", 32) }, "other members or keys"},
		"one more admin": {func(o *Org) {
			o.Users = append(o.Users, User{"mallory", "admin", strings.Repeat("ab", 32)})
		}, "other members or keys"},
		"another authority": {func(o *Org) {
			other, err := MakeOrg(t.TempDir(), OrgPlan{Org: o.Name, Host: "127.0.0.1", Port: 1, Now: at})
			if err != nil {
				t.Fatal(err)
			}
			o.Authority = other.Authority
		}, "another authority"},
	} {
		changed := *orgs[1]
		changed.Users = append([]User(nil), changed.Users...)
		c.change(&changed)
		g, n, err := Combine("trade", []*Org{orgs[0], &changed}, params(block.OrdererRaft), at)
		if err != nil {
			t.Fatal(err)
		}
		if err := Join(filepath.Join(dir, changed.Name), g, n); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	g, n, err := Combine("trade", orgs[:1], params(block.OrdererSolo), at)
	if err != nil {
		t.Fatal(err)
	}
	if err := Join(filepath.Join(dir, orgs[1].Name), g, n); err == nil {
		t.Error("an organization joined a network that it is not in")
	}
	n.ID = strings.Repeat("0", 64)
	if err := Join(filepath.Join(dir, orgs[0].Name), g, n); err == nil {
		t.Error("genesis and network.toml of two networks were taken")
	}
}

func TestQuorum(t *testing.T) {
	for _, c := range []struct {
		protocol string
		n, want  int
	}{
		{block.OrdererSolo, 1, 1}, {block.OrdererSolo, 2, 0}, {block.OrdererRaft, 3, 1}, {block.OrdererRaft, 0, 0},
		{block.OrdererPBFT, 3, 0}, {block.OrdererPBFT, 4, 3}, {block.OrdererPBFT, 5, 4}, {block.OrdererPBFT, 6, 4}, {block.OrdererPBFT, 7, 5},
	} {
		if got, err := quorumOf(c.protocol, c.n); got != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%s of %d: %d, %v; want %d", c.protocol, c.n, got, err, c.want)
		}
	}
}

// TestConfigErrors: a mistake in a file is named with its line.
func TestConfigErrors(t *testing.T) {
	dir := t.TempDir()
	good := string(fill("node", nodeForm, struct{ Org, Name, Mesh, SQL string }{"bank", "node1", "127.0.0.1:1", "127.0.0.1:2"}))
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown setting":  {"workers = 0", "wokers = 0", `line 11: unknown setting "wokers"`},
		"wrong type":       {"workers = 0", `workers = "many"`, "line 11"},
		"no toml":          {"workers = 0", "workers 0", "line 11"},
		"negative":         {"workers = 0", "workers = -1", "workers must not be negative"},
		"scrubs astray":    {"scrub_minutes = 60", "scrub_minutes = -1", "scrub_minutes must be in 0.."},
		"no port":          {`listen = "127.0.0.1:2"`, `listen = "127.0.0.1"`, "missing port"},
		"no host":          {`listen = "127.0.0.1:2"`, `listen = ":2"`, "host and port are needed"},
		"no level":         {`log_level = "info"`, `log_level = "loud"`, "none of debug"},
		"bad organization": {`org = "bank"`, `org = "../bank"`, "a name starts with"},
		"unknown method":   {`method = "cert"`, `method = "trust"`, "rule 2 of sql.hba: method"},
		"cert in clear": {`user = "all"` + "\naddress = \"all\"\nmethod = \"cert\"", `user = "all"` + "\naddress = \"10.0.0.0\"\nmethod = \"cert\"",
			"neither all nor a range"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s: nothing to replace", name)
		}
		if err := os.WriteFile(filepath.Join(dir, NodeFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadNode(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if _, err := ReadOrderer(dir); err == nil || !strings.Contains(err.Error(), "no home of an orderer") {
		t.Errorf("a missing file: %v", err)
	}
}

// FuzzConfig: no file crashes a reader.
func FuzzConfig(f *testing.F) {
	f.Add(fill("node", nodeForm, struct{ Org, Name, Mesh, SQL string }{"bank", "node1", "127.0.0.1:1", "127.0.0.1:2"}))
	f.Add((&Org{Name: "bank", Users: []User{{"a", "client", "00"}}}).encode())
	f.Add((&Network{Name: `n"\`, Orgs: []Org{{Name: "bank"}}}).Encode())
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		for _, file := range []string{NodeFile, OrdererFile, WalletFile, NetworkFile, PublicFile} {
			if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = ReadNode(dir)
		_, _ = ReadOrderer(dir)
		_, _ = ReadWallet(dir)
		_, _ = ReadNetwork(filepath.Join(dir, NetworkFile))
		_, _ = ReadOrg(filepath.Join(dir, PublicFile))
	})
}
