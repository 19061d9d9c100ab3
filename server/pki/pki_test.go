package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/identity"
)

var (
	now   = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	alice = identity.UserID{Org: "bank", Name: "alice"}
)

func signer(n byte) *identity.Signer { return identity.NewSigner([32]byte{n}) }

func authority(t *testing.T, org string, key byte) *Authority {
	t.Helper()
	a, err := NewAuthority(org, signer(key), now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *Authority, m Member) *x509.Certificate {
	t.Helper()
	text, err := a.Issue(m, now, MemberLife)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := parsePEM(text)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// verifier knows alice of bank, a client with key 10.
func verifier(t *testing.T) (*Verifier, *Authority) {
	bank := authority(t, "bank", 1)
	return &Verifier{
		Authorities: map[string]*x509.Certificate{"bank": bank.cert, "supplier": authority(t, "supplier", 2).cert},
		Lookup: func(u identity.UserID) (Registered, bool) {
			return Registered{identity.Client, signer(10).Public(), true}, u == alice
		},
		Clock: func() time.Time { return now },
	}, bank
}

func TestVerifier(t *testing.T) {
	usual := Member{User: alice, Role: identity.Client, Key: signer(10).Public()}
	for name, c := range map[string]struct {
		change func(v *Verifier, bank **Authority, m *Member)
		want   string
	}{
		"accepted": {func(*Verifier, **Authority, *Member) {}, ""},
		"expired": {func(v *Verifier, _ **Authority, _ *Member) {
			v.Clock = func() time.Time { return now.Add(MemberLife + time.Minute) }
		}, "expired"},
		"not valid yet": {func(v *Verifier, _ **Authority, _ *Member) {
			v.Clock = func() time.Time { return now.Add(-2 * skew) }
		}, "not yet valid"},
		"another authority of that name": {func(_ *Verifier, bank **Authority, _ *Member) {
			*bank = authority(t, "bank", 3)
		}, "unknown authority"},
		"an organization that is not there": {func(v *Verifier, _ **Authority, _ *Member) {
			delete(v.Authorities, "bank")
		}, "not of this network"},
		"not registered": {func(_ *Verifier, _ **Authority, m *Member) { m.User.Name = "mallory" }, "not registered"},
		"another key":    {func(_ *Verifier, _ **Authority, m *Member) { m.Key = signer(11).Public() }, "with another key"},
		"another role":   {func(_ *Verifier, _ **Authority, m *Member) { m.Role = identity.Admin }, "registered as a client, not as an admin"},
		"revoked in the chain": {func(v *Verifier, _ **Authority, _ *Member) {
			v.Lookup = func(identity.UserID) (Registered, bool) {
				return Registered{identity.Client, signer(10).Public(), false}, true
			}
		}, "was revoked"},
		"revoked here": {func(v *Verifier, _ **Authority, _ *Member) {
			v.Revoked = func(k identity.PublicKey) bool { return k == signer(10).Public() }
		}, "list of revoked keys"},
	} {
		t.Run(name, func(t *testing.T) {
			v, bank := verifier(t)
			m := usual
			c.change(v, &bank, &m)
			told := 0
			v.Refused = func(error) { told++ }
			got, err := v.Check([]*x509.Certificate{issue(t, bank, m)})
			switch {
			case c.want == "":
				if err != nil || got.User != alice || told != 0 {
					t.Errorf("%v, %v", got, err)
				}
			case err == nil || !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) || told != 1:
				t.Errorf("%v, told %d times; want %s", err, told, c.want)
			}
		})
	}
	v, bank := verifier(t)
	if _, err := v.Check(nil); !errors.Is(err, ErrRefused) {
		t.Errorf("no certificate: %v", err)
	}
	if _, err := v.Check([]*x509.Certificate{bank.cert}); !errors.Is(err, ErrRefused) {
		t.Errorf("the authority's own: %v", err)
	}
	if _, err := v.Check([]*x509.Certificate{issue(t, bank, usual)}, identity.Node); err == nil || !strings.Contains(err.Error(), "may not") {
		t.Errorf("a client where nodes are: %v", err)
	}
	if _, err := bank.Issue(Member{User: identity.UserID{Org: "supplier", Name: "x"}, Role: identity.Client}, now, MemberLife); err == nil {
		t.Error("an authority certified a member of another organization")
	}
}

// TestHandshake connects two nodes, replaces a certificate while they run, and
// has one refuse the other.
func TestHandshake(t *testing.T) {
	bank := authority(t, "bank", 1)
	dir := t.TempDir()
	keys := map[string]*identity.Signer{"node1": signer(20), "node2": signer(21)}
	lookup := func(u identity.UserID) (Registered, bool) {
		k, ok := keys[u.Name]
		if !ok {
			return Registered{}, false
		}
		return Registered{identity.Node, k.Public(), true}, true
	}
	write := func(name string, life time.Duration) {
		text, err := bank.Issue(Member{User: identity.UserID{Org: "bank", Name: name}, Role: identity.Node, Key: keys[name].Public()}, now, life)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".crt"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair := func(name string) *KeyPair {
		write(name, MemberLife)
		if err := keys[name].SaveKey(filepath.Join(dir, name+".pem")); err != nil {
			t.Fatal(err)
		}
		p, err := OpenKeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".pem"), nil, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	clock := now
	v := &Verifier{Authorities: map[string]*x509.Certificate{"bank": bank.cert}, Lookup: lookup, Clock: func() time.Time { return clock }}
	one, two := pair("node1"), pair("node2")
	connect := func(want string) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		served := make(chan error, 1)
		go func() {
			a, err := l.Accept()
			if err != nil {
				served <- err
				return
			}
			defer a.Close()
			s := tls.Server(a, v.Server(one, identity.Node))
			if err = s.Handshake(); err == nil {
				_, err = s.Write([]byte("x"))
			}
			served <- err
		}()
		b, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := tls.Client(b, v.Client(two, identity.UserID{Org: "bank", Name: want}, identity.Node))
		if err = c.Handshake(); err == nil {
			_, err = io.ReadFull(c, make([]byte, 1))
		}
		b.Close()
		if e := <-served; err == nil {
			err = e
		}
		return err
	}
	if err := connect("node1"); err != nil {
		t.Fatal(err)
	}
	if err := connect("node2"); err == nil {
		t.Error("node1 passed for node2")
	}
	clock = now.Add(MemberLife + time.Hour)
	if err := connect("node1"); err == nil {
		t.Error("expired certificates were accepted")
	}
	write("node1", 2*MemberLife)
	write("node2", 2*MemberLife)
	one.looked, two.looked = time.Time{}, time.Time{}
	if err := connect("node1"); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	delete(keys, "node2")
	if err := connect("node1"); err == nil {
		t.Error("a node that is not registered was let in")
	}
}

func TestRevokedKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "revoked")
	var logged error
	r, err := OpenRevokedKeys(path, func(err error) { logged = err })
	if err != nil {
		t.Fatal(err)
	}
	key := signer(1).Public()
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.looked = time.Time{}
	}
	if r.Has(key) {
		t.Error("a key was revoked by a file that is not there")
	}
	write("# stolen in May\n" + key.String() + " # alice\n")
	if !r.Has(key) || r.Has(signer(2).Public()) || logged != nil {
		t.Errorf("the file is not followed: %v", logged)
	}
	write("nonsense, and longer than a key\n")
	if !r.Has(key) || logged == nil {
		t.Error("a damaged file is not told about, or lets a revoked key in")
	}
}
