package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/home"
	"github.com/tallystick/tallystick/server/pgwire"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// access decides which PostgreSQL clients come in, by the rules of node.toml.
type access struct {
	rules  []home.Rule
	member *Member
	passwd string // path
}

func newAccess(dir string, conf *home.NodeConfig, member *Member) (*access, error) {
	a := &access{rules: conf.SQL.Rules, member: member, passwd: filepath.Join(dir, home.PasswdFile)}
	_, err := a.passwords()
	return a, err
}

// tls offers the node's certificate and asks clients for theirs; whether one is
// needed depends on the rule.
func (a *access) tls() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.member.Pair.Current() },
		ClientAuth:             tls.RequestClientCert,
		SessionTicketsDisabled: true,
	}
}

// authenticate finds the rule of a connection and does what it asks for, but for
// passwords, which come afterwards.
func (a *access) authenticate(_ context.Context, p pgwire.StartupParams) error {
	rule, err := a.rule(p)
	if err != nil {
		return err
	}
	if p.Database != sql.Database {
		return pgwire.UnknownDatabase(p.Database)
	}
	if rule.Method == home.MethodCert {
		return a.certificate(p)
	}
	return nil
}

// certificate wants the certificate of the user who connects, a user of the node's
// organization.
func (a *access) certificate(p pgwire.StartupParams) error {
	if p.TLS == nil || len(p.TLS.PeerCertificates) == 0 {
		return pgerr.New(pgerr.InvalidAuthorizationSpec, "connection requires a valid client certificate")
	}
	m, err := a.member.Verifier.Check(p.TLS.PeerCertificates, identity.Admin, identity.Client)
	if err != nil {
		return pgerr.New(pgerr.InvalidAuthorizationSpec, "certificate authentication failed for user \"%s\"", p.User).WithDetail("%v.", err)
	}
	if want := (identity.UserID{Org: a.member.User.Org, Name: p.User}); m.User != want {
		return pgerr.New(pgerr.InvalidAuthorizationSpec, "certificate authentication failed for user \"%s\"", p.User).
			WithDetail("The certificate is that of %s; this node serves organization %s.", m.User, a.member.User.Org)
	}
	return nil
}

// verifier returns what a client has to prove to know; nil if no password is asked
// for. A user who is not in the file gets the same questions.
func (a *access) verifier(p pgwire.StartupParams) (*pgwire.SCRAMVerifier, error) {
	rule, err := a.rule(p)
	if err != nil || rule.Method != home.MethodSCRAM {
		return nil, err
	}
	users, err := a.passwords()
	if err != nil {
		return nil, err
	}
	if v := users[p.User]; v != nil {
		return v, nil
	}
	return pgwire.UnknownVerifier(p.User), nil
}

// byPassword reports whether the user of a connection has proved to know a
// password, and is no user of the chain.
func (a *access) byPassword(p pgwire.StartupParams) bool {
	rule, err := a.rule(p)
	return err == nil && rule.Method == home.MethodSCRAM
}

// rule finds the first rule that fits.
func (a *access) rule(p pgwire.StartupParams) (*home.Rule, error) {
	for i := range a.rules {
		fits, err := a.fits(&a.rules[i], p)
		if err != nil {
			return nil, err
		}
		if !fits {
			continue
		}
		if a.rules[i].Method == home.MethodReject {
			return nil, pgerr.New(pgerr.InvalidAuthorizationSpec, "pg_hba.conf rejects connection for host \"%s\", user \"%s\", database \"%s\", %s",
				clientHost(p), p.User, p.Database, encryption(p)).WithDetail("Rule %d of sql.hba in %s does.", i+1, home.NodeFile)
		}
		return &a.rules[i], nil
	}
	return nil, pgerr.New(pgerr.InvalidAuthorizationSpec, "no pg_hba.conf entry for host \"%s\", user \"%s\", database \"%s\", %s",
		clientHost(p), p.User, p.Database, encryption(p)).WithHint("The rules are sql.hba in %s. Connect with TLS and a client certificate.", home.NodeFile)
}

func encryption(p pgwire.StartupParams) string {
	if p.TLS != nil {
		return "SSL encryption"
	}
	return "no encryption"
}

func clientHost(p pgwire.StartupParams) string {
	if at, err := netip.ParseAddrPort(p.ClientAddr); err == nil {
		return at.Addr().Unmap().String()
	}
	return p.ClientAddr
}

// fits reports whether a rule is about a connection.
func (a *access) fits(r *home.Rule, p pgwire.StartupParams) (bool, error) {
	if r.Type == home.TypeHostSSL && p.TLS == nil || r.Type == home.TypeHostNoSSL && p.TLS != nil {
		return false, nil
	}
	if r.Database != home.All && r.Database != p.Database {
		return false, nil
	}
	if r.Address != home.All {
		prefix, err := netip.ParsePrefix(r.Address)
		at, err2 := netip.ParseAddr(clientHost(p))
		if err != nil || err2 != nil || !prefix.Contains(at) {
			return false, nil
		}
	}
	switch r.User {
	case home.All, p.User:
		return true, nil
	case home.PasswdUser:
		users, err := a.passwords()
		return users[p.User] != nil, err
	}
	return false, nil
}

// passwords reads the file passwd: a line for each user, name:verifier.
func (a *access) passwords() (map[string]*pgwire.SCRAMVerifier, error) {
	f, err := os.Open(a.passwd)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	users := map[string]*pgwire.SCRAMVerifier{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, text, _ := strings.Cut(line, ":")
		v, err := pgwire.ParseVerifier(text)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", a.passwd, n, err)
		}
		users[name] = v
	}
	return users, lines.Err()
}
