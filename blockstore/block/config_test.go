package block

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/identity"
)

// configGenesis has three organizations; buyer has two admins. Keys: buyer 1 and
// 2, carrier 3, seller 4, orderers 11 to 14.
func configGenesis() *Genesis {
	key := func(n byte) identity.PublicKey { return testSigner(n).Public() }
	g := sampleGenesis()
	g.Orgs = []Org{
		{Name: "buyer", Users: []User{{"admin", identity.Admin, key(1)}, {"alice", identity.Client, key(9)}, {"deputy", identity.Admin, key(2)}}},
		{Name: "carrier", Users: []User{{"admin", identity.Admin, key(3)}}},
		{Name: "seller", Users: []User{{"admin", identity.Admin, key(4)}}},
	}
	g.Params.Orderer, g.Params.OrderingWindow = OrdererPBFT, 5
	g.Orderers = identity.OrdererSet{Keys: []identity.PublicKey{key(11), key(12), key(13), key(14)}, Quorum: 3}
	g.Sort()
	return g
}

var configSigners = map[string]byte{"buyer/admin": 1, "buyer/deputy": 2, "carrier/admin": 3, "seller/admin": 4, "bank/admin": 5}

// signConfig makes the transaction of a configuration with signatures of users.
func signConfig(t testing.TB, c *Config, users ...string) *Tx {
	t.Helper()
	var list []*Tx
	for _, u := range users {
		id, err := identity.ParseUserID(u)
		if err != nil {
			t.Fatal(err)
		}
		a, err := ApproveConfig(c, id, testSigner(configSigners[u]))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	tx, err := NewConfigTx(c, list)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func addBank(c *Config) {
	c.Orgs = append(c.Orgs, ConfigOrg{Name: "bank", Admins: []Admin{{"admin", testSigner(5).Public()}}})
	c.Sort()
}

func removeOrg(name string) func(*Config) {
	return func(c *Config) {
		c.Orgs = slices.DeleteFunc(c.Orgs, func(o ConfigOrg) bool { return o.Name == name })
	}
}

func TestConfigOfGenesis(t *testing.T) {
	g := configGenesis()
	c := g.Config()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.ID() != g.NetworkID() {
		t.Error("the id of configuration 0 is not the network id")
	}
	if len(c.Orgs) != 3 || len(c.Orgs[0].Admins) != 2 {
		t.Errorf("organizations are %v", c.Orgs)
	}
}

// TestConfigVerify says of changes and signatures whether they are enough.
func TestConfigVerify(t *testing.T) {
	all := []string{"buyer/admin", "carrier/admin", "seller/admin"}
	faster := func(c *Config) { c.Ordering.BlockTxs = 7 }
	rotate := func(c *Config) { c.Org("buyer").Admins[0].Key = testSigner(20).Public() }
	cases := []struct {
		name   string
		change func(*Config)
		signed []string
		want   string // part of the error; "" if it is accepted
	}{
		{"parameter, all", faster, all, ""},
		{"parameter, deputy signs", faster, []string{"buyer/deputy", "carrier/admin", "seller/admin"}, ""},
		{"parameter, two admins of one", faster, []string{"buyer/admin", "buyer/deputy", "seller/admin"}, "missing from: carrier"},
		{"parameter, one", faster, []string{"seller/admin"}, "missing from: buyer, carrier"},
		{"nothing, one", func(*Config) {}, []string{"seller/admin"}, "missing from: buyer, carrier"},
		{"new organization, all", addBank, all, ""},
		{"new organization signs for itself", addBank, append([]string{"bank/admin"}, all[:2]...), "bank/admin is not an admin"},
		{"removal without consent", removeOrg("carrier"), []string{"buyer/admin", "seller/admin"}, ""},
		{"removal by one", removeOrg("carrier"), []string{"buyer/admin"}, "missing from: seller"},
		{"removal of two by one", func(c *Config) { removeOrg("carrier")(c); removeOrg("seller")(c) }, []string{"buyer/admin"}, "1 of 3 organizations"},
		{"own admins", rotate, []string{"buyer/deputy"}, ""},
		{"own admins by another", rotate, []string{"seller/admin"}, "missing from: buyer"},
		{"own admins of two", func(c *Config) { rotate(c); c.Org("seller").Admins[0].Key = testSigner(21).Public() }, []string{"buyer/admin", "seller/admin"}, ""},
		{"own admins and a parameter", func(c *Config) { rotate(c); faster(c) }, []string{"buyer/admin"}, "missing from: carrier, seller"},
		{"orderers", func(c *Config) {
			c.Orderers.Keys = append(c.Orderers.Keys, testSigner(15).Public())
			c.Orderers.Quorum = Quorum(OrdererPBFT, 5)
			c.Sort()
		}, all, ""},
		{"protocol", func(c *Config) { c.Ordering.Protocol = OrdererZyzzyva }, all, "protocol of the ordering service cannot change"},
		{"window", func(c *Config) { c.Ordering.Window++ }, all, "ordering window cannot change"},
		{"network", func(c *Config) { c.Network[0] ^= 1 }, all, "for network"},
		{"number", func(c *Config) { c.Number = 2 }, all, "configuration 2 follows"},
		{"previous", func(c *Config) { c.Previous[0] ^= 1 }, all, "the last one is configuration 0"},
	}
	base := configGenesis().Config()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			next := base.Next()
			c.change(next)
			got, err := base.Verify(signConfig(t, next, c.signed...).Config)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want == "" && got.ID() != next.ID():
				t.Error("another configuration came out")
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestConfigSignatures changes each part of a good transaction: no signature may
// survive it.
func TestConfigSignatures(t *testing.T) {
	base := configGenesis().Config()
	next := base.Next()
	next.Ordering.BlockTxs = 7
	good := signConfig(t, next, "buyer/admin", "carrier/admin", "seller/admin").Config
	if _, err := base.Verify(good); err != nil {
		t.Fatal(err)
	}
	for i := range good.Approvals {
		bad := &ConfigTx{Config: good.Config, Approvals: slices.Clone(good.Approvals)}
		forged, err := ApproveConfig(next, good.Approvals[i].User, testSigner(99))
		if err != nil {
			t.Fatal(err)
		}
		bad.Approvals[i] = forged
		if _, err := base.Verify(bad); err == nil || !strings.Contains(err.Error(), "does not verify") {
			t.Errorf("approval %d signed by a stranger: %v", i, err)
		}
	}
	other := next.Clone()
	other.Ordering.BlockTxs = 8
	if _, err := base.Verify(&ConfigTx{Config: other, Approvals: good.Approvals}); err == nil {
		t.Error("the approvals are good for another configuration")
	}
	// What the admins say elsewhere is no approval.
	for name, change := range map[string]func(*Tx){
		"function":  func(tx *Tx) { tx.Call.Name = "comment_deploytx" },
		"schema":    func(tx *Tx) { tx.Call.Schema = "private" },
		"type":      func(tx *Tx) { tx.Call.ArgTypes[1] = "text" },
		"network":   func(tx *Tx) { tx.Network[0] ^= 1 },
		"null":      func(tx *Tx) { tx.Call.Args[1] = Arg{Null: true} },
		"arguments": func(tx *Tx) { tx.Call.ArgTypes, tx.Call.Args = tx.Call.ArgTypes[:1], tx.Call.Args[:1] },
	} {
		tx, err := ApproveConfig(next, identity.UserID{Org: "buyer", Name: "admin"}, testSigner(1))
		if err != nil {
			t.Fatal(err)
		}
		change(tx)
		if err := tx.Sign(testSigner(1)); err != nil {
			t.Fatal(err)
		}
		if base.VerifyApproval(next, tx) == nil {
			t.Errorf("%s changed: still an approval", name)
		}
		if _, err := NewConfigTx(next, []*Tx{tx}); err == nil {
			t.Errorf("%s changed: part of a transaction", name)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	cases := map[string]func(*Config){
		"no organization":     func(c *Config) { c.Orgs = nil },
		"no admin":            func(c *Config) { c.Orgs[0].Admins = nil },
		"order of orgs":       func(c *Config) { slices.Reverse(c.Orgs) },
		"order of admins":     func(c *Config) { slices.Reverse(c.Orgs[0].Admins) },
		"name of an org":      func(c *Config) { c.Orgs[0].Name = "Bank" },
		"order of orderers":   func(c *Config) { slices.Reverse(c.Orderers.Keys) },
		"small quorum":        func(c *Config) { c.Orderers.Quorum = 2 },
		"three orderers":      func(c *Config) { c.Orderers.Keys = c.Orderers.Keys[:3]; c.Orderers.Quorum = 2 },
		"large quorum":        func(c *Config) { c.Orderers.Quorum = 4 },
		"block size":          func(c *Config) { c.Ordering.BlockTxs = 0 },
		"protocol":            func(c *Config) { c.Ordering.Protocol = "paxos" },
		"small-order admin":   func(c *Config) { c.Orgs[0].Admins[0].Key = identity.PublicKey{1} },
		"small-order orderer": func(c *Config) { c.Orderers.Keys[0] = identity.PublicKey{1}; c.Sort() },
		"no previous":         func(c *Config) { c.Previous = Hash{} },
	}
	for name, change := range cases {
		c := configGenesis().Config().Next()
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := DecodeConfig(c.Encode()); err == nil {
			t.Errorf("%s: decoded", name)
		}
	}
}

// TestQuorum checks the bound itself: with f = (n-1)/3 liars any two quorums
// share an honest member, and the honest members alone are a quorum.
func TestQuorum(t *testing.T) {
	for n := 1; n <= 100; n++ {
		f, q := (n-1)/3, Quorum(OrdererPBFT, n)
		if 2*q-n <= f || q > n-f {
			t.Errorf("%d orderers, %d liars: quorum %d", n, f, q)
		}
		if n == 3*f+1 && q != 2*f+1 {
			t.Errorf("%d orderers: quorum %d, not 2f+1", n, q)
		}
	}
	if Quorum(OrdererSolo, 1) != 1 || Quorum(OrdererRaft, 5) != 1 {
		t.Error("orderers who do not lie certify alone")
	}
}

func TestConfigTxCodec(t *testing.T) {
	next := configGenesis().Config().Next()
	addBank(next)
	tx := signConfig(t, next, "seller/admin", "buyer/admin", "carrier/admin")
	if tx.ID() != TxID(next.ID()) || tx.User.String() != "buyer/admin" || tx.Validate() != nil {
		t.Errorf("id %s, user %s, %v", tx.ID(), tx.User, tx.Validate())
	}
	raw := tx.Encode()
	got, err := DecodeTx(bytes.Clone(raw))
	if err != nil {
		t.Fatal(err)
	}
	if got.Config == nil || got.ID() != tx.ID() || !bytes.Equal(got.Encode(), raw) {
		t.Error("decoded to another transaction")
	}
	if h := sha256.Sum256(raw); tx.ContentHash() != h || got.ContentHash() != h {
		t.Error("the content hash is not that of the bytes")
	}
	got.raw = nil
	if !bytes.Equal(got.Encode(), raw) || got.size() != len(raw) || got.ID() != tx.ID() {
		t.Error("encodes differently once its bytes are forgotten")
	}
	if err := got.Sign(testSigner(1)); err == nil {
		t.Error("signed as a call")
	}
	for n := range raw {
		if _, err := DecodeTx(bytes.Clone(raw[:n])); err == nil {
			t.Fatalf("the first %d bytes decode", n)
		}
	}
	if _, err := DecodeTx(append(bytes.Clone(raw), 0)); err == nil {
		t.Error("trailing byte accepted")
	}
	if _, err := NewConfigTx(configGenesis().Config(), tx.Config.Approvals); err == nil {
		t.Error("configuration 0 has a transaction")
	}
	if _, err := NewConfigTx(next, nil); err == nil {
		t.Error("a transaction without approvals")
	}
	if len(raw) < minTxBytes {
		t.Errorf("%d bytes, below the bound of the block decoder", len(raw))
	}
}

// TestSmallestConfigTx holds the bound that protects the decoder of blocks.
func TestSmallestConfigTx(t *testing.T) {
	g := &Genesis{Network: "n", Orgs: []Org{{"o", []User{{"a", identity.Admin, testSigner(1).Public()}}}},
		Orderers: identity.OrdererSet{Keys: []identity.PublicKey{testSigner(2).Public()}, Quorum: 1}, Params: DefaultParams()}
	c := g.Config().Next()
	a, err := ApproveConfig(c, identity.UserID{Org: "o", Name: "a"}, testSigner(1))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := NewConfigTx(c, []*Tx{a})
	if err != nil {
		t.Fatal(err)
	}
	if len(tx.Encode()) < minTxBytes {
		t.Errorf("%d bytes, below the bound of %d", len(tx.Encode()), minTxBytes)
	}
}

// chainOf makes blocks after genesis with these transactions.
func chainOf(t testing.TB, g *Genesis, blocks ...[]*Tx) []*Block {
	t.Helper()
	last, err := g.Block()
	if err != nil {
		t.Fatal(err)
	}
	var list []*Block
	for _, txs := range blocks {
		b := &Block{Number: last.Number + 1, PrevHash: last.Hash(), ConfigID: g.NetworkID(), Timestamp: last.Timestamp + 1, Txs: txs}
		b.Seal()
		list, last = append(list, b), b
	}
	return list
}

func TestSchedule(t *testing.T) {
	g := configGenesis()
	all := []string{"buyer/admin", "carrier/admin", "seller/admin"}
	c1 := g.Config().Next()
	c1.Ordering.BlockTxs = 1
	c2 := c1.Next()
	addBank(c2)
	rival := g.Config().Next()
	rival.Ordering.BlockTxs = 99
	c3 := c2.Next()
	blocks := chainOf(t, g,
		[]*Tx{sampleTx(t)},
		[]*Tx{signConfig(t, c2, all...), signConfig(t, c1, all...), signConfig(t, rival, all...), signConfig(t, c2, all...)}, // block 2
		nil,
		[]*Tx{signConfig(t, c1, all...), signConfig(t, c3, all...), signConfig(t, c3, append(all, "bank/admin")...)}, // block 4
	)
	s := NewSchedule(g)
	var outcome []string
	for _, b := range blocks {
		refused, err := s.Advance(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range refused {
			outcome = append(outcome, map[bool]string{true: "ok", false: "refused"}[r == nil])
		}
	}
	want := []string{"refused", "ok", "refused", "ok", "refused", "refused", "ok"}
	if !slices.Equal(outcome, want) {
		t.Errorf("outcomes %v, want %v", outcome, want)
	}
	for height, number := range map[Height]uint64{0: 0, 1: 0, 7: 0, 8: 2, 9: 2, 10: 3, 11: 3} {
		if got := s.At(height); got.Config.Number != number || got.ID != got.Config.ID() {
			t.Errorf("configuration %d at height %d, want %d", got.Config.Number, height, number)
		}
	}
	if s.Latest().Number != 3 || s.Next() != 5 {
		t.Errorf("latest configuration %d, next block %d", s.Latest().Number, s.Next())
	}
	if _, err := s.Advance(blocks[0]); err == nil {
		t.Error("a block was taken twice")
	}
	restored := NewSchedule(g)
	for _, e := range s.Entries()[1:] {
		if err := restored.Restore(e.Config, e.Block); err != nil {
			t.Fatal(err)
		}
	}
	restored.Skip(5)
	if !slices.EqualFunc(restored.Entries(), s.Entries(), func(a, b Scheduled) bool { return a.ID == b.ID && a.From == b.From && a.Block == b.Block }) || restored.Next() != 5 {
		t.Error("restoring gives another schedule")
	}
	if err := restored.Restore(c1, 6); err == nil {
		t.Error("restored what does not follow")
	}
}

// TestScheduleClone: a clone and its origin go separate ways.
func TestScheduleClone(t *testing.T) {
	g := configGenesis()
	all := []string{"buyer/admin", "carrier/admin", "seller/admin"}
	s := NewSchedule(g)
	a, b := s.Clone(), s.Clone()
	for i, x := range []*Schedule{a, b} {
		c := g.Config().Next()
		c.Ordering.BlockTxs = uint64(i + 1)
		if _, err := x.Advance(chainOf(t, g, []*Tx{signConfig(t, c, all...)})[0]); err != nil {
			t.Fatal(err)
		}
	}
	if s.Latest().Number != 0 || a.Latest().Ordering.BlockTxs != 1 || b.Latest().Ordering.BlockTxs != 2 {
		t.Error("clones share their entries")
	}
}

// TestDemandsAgainstNaive compares with a plain reading of the rule on random
// changes.
func TestDemandsAgainstNaive(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	changes := []func(*Config){
		addBank, removeOrg("carrier"), removeOrg("seller"),
		func(c *Config) { c.Ordering.BlockTxs++ },
		func(c *Config) { c.Ordering.BlockTimeoutMicros++ },
		func(c *Config) { c.Orderers.Keys = c.Orderers.Keys[:1] },
	}
	for _, org := range []string{"buyer", "carrier", "seller"} {
		changes = append(changes, func(c *Config) {
			if o := c.Org(org); o != nil {
				o.Admins[0].Name = "other"
			}
		})
	}
	base := configGenesis().Config()
	for range 2000 {
		next := base.Next()
		for range rng.IntN(4) {
			changes[rng.IntN(len(changes))](next)
		}
		var want []string
		onlyOwn := next.Ordering == base.Ordering && slices.Equal(next.Orderers.Keys, base.Orderers.Keys)
		touched := false
		for _, name := range []string{"bank", "buyer", "carrier", "seller"} {
			was, is := base.Org(name), next.Org(name)
			onlyOwn = onlyOwn && (was == nil) == (is == nil)
			touched = touched || was != nil && is != nil && !slices.Equal(was.Admins, is.Admins)
		}
		for _, o := range base.Orgs {
			is := next.Org(o.Name)
			if is != nil && (!onlyOwn || !touched || !slices.Equal(is.Admins, o.Admins)) {
				want = append(want, o.Name)
			}
		}
		if got := base.Demands(next); !slices.Equal(got, want) {
			t.Fatalf("demands %v, want %v", got, want)
		}
	}
}
