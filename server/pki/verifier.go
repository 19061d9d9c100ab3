package pki

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tallystick/tallystick/identity"
)

// Registered is what the network knows of a user.
type Registered struct {
	Role   identity.Role
	Key    identity.PublicKey
	Active bool
}

// Verifier decides whose certificates are accepted. It is safe for concurrent use
// if its functions are.
type Verifier struct {
	// Authorities has the certificate of each organization's authority.
	Authorities map[string]*x509.Certificate
	// Lookup returns what the network has registered for a user: the chain as of
	// its last block, or the genesis.
	Lookup func(identity.UserID) (Registered, bool)
	// Revoked reports whether this machine refuses a key whatever the network
	// says; nil refuses none.
	Revoked func(identity.PublicKey) bool
	// Clock is the time by which certificates are valid; time.Now if nil.
	Clock func() time.Time
	// Refused, if not nil, is told about everyone who was turned away.
	Refused func(err error)
}

// ErrRefused is in the chain of every error about a certificate.
var ErrRefused = errors.New("certificate refused")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// Check verifies the certificate that a peer has shown and returns who it is. The
// roles, if any, are those that the peer may have.
func (v *Verifier) Check(certs []*x509.Certificate, roles ...identity.Role) (Member, error) {
	m, err := v.check(certs)
	if err == nil && len(roles) > 0 && !slices.Contains(roles, m.Role) {
		err = refused("%s is %s, which may not do this", m.User, article(m.Role))
	}
	if err != nil && v.Refused != nil {
		v.Refused(err)
	}
	return m, err
}

func article(r identity.Role) string {
	if r == identity.Admin || r == identity.Orderer {
		return "an " + r.String()
	}
	return "a " + r.String()
}

func (v *Verifier) check(certs []*x509.Certificate) (Member, error) {
	if len(certs) == 0 {
		return Member{}, refused("there is none")
	}
	cert := certs[0]
	m, err := memberOf(cert)
	if err != nil {
		return Member{}, err
	}
	authority := v.Authorities[m.User.Org]
	if authority == nil {
		return m, refused("organization %s is not of this network", m.User.Org)
	}
	now := time.Now()
	if v.Clock != nil {
		now = v.Clock()
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	// No intermediates: what else the peer has sent does not matter.
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return m, refused("%s: %w", m.User, err)
	}
	return m, v.registered(m)
}

// registered compares a certified member with what the network knows.
func (v *Verifier) registered(m Member) error {
	known, ok := v.Lookup(m.User)
	switch {
	case !ok:
		return refused("%s is not registered", m.User)
	case !known.Active:
		return refused("%s was revoked", m.User)
	case known.Key != m.Key:
		return refused("%s is registered with another key", m.User)
	case known.Role != m.Role:
		return refused("%s is registered as %s, not as %s", m.User, article(known.Role), article(m.Role))
	case v.Revoked != nil && v.Revoked(m.Key):
		return refused("the key of %s is on the list of revoked keys", m.User)
	}
	return nil
}

// memberOf reads whom a certificate is for.
func memberOf(cert *x509.Certificate) (Member, error) {
	s := cert.Subject
	if len(s.Organization) != 1 || len(s.OrganizationalUnit) != 1 {
		return Member{}, refused("its subject %q does not name an organization and a role", s)
	}
	m := Member{User: identity.UserID{Org: s.Organization[0], Name: s.CommonName}}
	if err := m.User.Validate(); err != nil {
		return Member{}, refused("its subject: %w", err)
	}
	var err error
	if m.Role, err = identity.ParseRole(s.OrganizationalUnit[0]); err != nil {
		return m, refused("its subject: %w", err)
	}
	key, ok := cert.PublicKey.(ed25519.PublicKey)
	if !ok {
		return m, refused("its key is not an Ed25519 key")
	}
	m.Key = identity.PublicKey(key)
	return m, nil
}

// Server is the TLS configuration of a server whose clients must have one of the
// roles.
func (v *Verifier) Server(pair *KeyPair, roles ...identity.Role) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Current() },
		ClientAuth:             tls.RequireAnyClientCert,
		SessionTicketsDisabled: true, // every connection is checked anew
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := v.Check(s.PeerCertificates, roles...)
			return err
		},
	}
}

// Client is the TLS configuration for a connection to one particular member.
func (v *Verifier) Client(pair *KeyPair, want identity.UserID, roles ...identity.Role) *tls.Config {
	return &tls.Config{
		MinVersion:           tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.Current() },
		// The library would check the host's name against public authorities;
		// what counts is below.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			m, err := v.Check(s.PeerCertificates, roles...)
			if err == nil && m.User != want {
				err = refused("%s answers where %s should", m.User, want)
				if v.Refused != nil {
					v.Refused(err)
				}
			}
			return err
		},
	}
}
