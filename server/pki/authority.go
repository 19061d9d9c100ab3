package pki

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/tallystick/tallystick/identity"
)

const (
	// AuthorityLife and MemberLife are the default validity of certificates.
	AuthorityLife = 10 * 365 * 24 * time.Hour
	MemberLife    = 365 * 24 * time.Hour

	// skew is how much earlier than now a certificate begins: clocks differ.
	skew = time.Hour
	// maxCertificateBytes is far more than any certificate of ours has.
	maxCertificateBytes = 64 << 10

	pemCertificate = "CERTIFICATE"
)

// Authority is the certificate authority of an organization.
type Authority struct {
	Org  string
	cert *x509.Certificate
	key  *identity.Signer
}

// NewAuthority makes an authority with a certificate that it signs itself, valid
// from now on.
func NewAuthority(org string, key *identity.Signer, now time.Time) (*Authority, error) {
	if err := identity.ValidateName(org); err != nil {
		return nil, fmt.Errorf("pki: organization: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{org}, CommonName: org + " authority"},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(AuthorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Authority{org, cert, key}, nil
}

// OpenAuthority joins an authority's certificate (PEM) and key.
func OpenAuthority(text []byte, key *identity.Signer) (*Authority, error) {
	cert, org, err := ParseAuthority(text)
	if err != nil {
		return nil, err
	}
	if public, ok := cert.PublicKey.(ed25519.PublicKey); !ok || identity.PublicKey(public) != key.Public() {
		return nil, errors.New("pki: the key is not that of the authority's certificate")
	}
	return &Authority{org, cert, key}, nil
}

// ParseAuthority reads the certificate of an authority and returns it with the
// organization that it is of.
func ParseAuthority(text []byte) (*x509.Certificate, string, error) {
	cert, err := parsePEM(text)
	if err != nil {
		return nil, "", err
	}
	if !cert.IsCA || len(cert.Subject.Organization) != 1 {
		return nil, "", errors.New("pki: the certificate is not that of an organization's authority")
	}
	org := cert.Subject.Organization[0]
	if err := identity.ValidateName(org); err != nil {
		return nil, "", fmt.Errorf("pki: authority: %w", err)
	}
	return cert, org, cert.CheckSignatureFrom(cert)
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return encodePEM(a.cert) }

// Member is whom a certificate is for.
type Member struct {
	User identity.UserID
	Role identity.Role
	Key  identity.PublicKey
	// Hosts are names and addresses that PostgreSQL clients find it under; nodes
	// only.
	Hosts []string
}

// Issue certifies a member of the organization for some time from now on and
// returns the certificate as PEM.
func (a *Authority) Issue(m Member, now time.Time, life time.Duration) ([]byte, error) {
	if err := m.User.Validate(); err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	if m.User.Org != a.Org || !m.Role.Valid() {
		return nil, fmt.Errorf("pki: %s is no member of organization %s, or has no role", m.User, a.Org)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{Organization: []string{a.Org}, OrganizationalUnit: []string{m.Role.String()}, CommonName: m.User.Name},
		NotBefore:   now.Add(-skew),
		NotAfter:    now.Add(life),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if m.Role == identity.Node || m.Role == identity.Orderer {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range m.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	cert, err := sign(template, a.cert, m.Key, a.key)
	if err != nil {
		return nil, err
	}
	return encodePEM(cert), nil
}

// sign makes a certificate with a random serial number.
func sign(template, parent *x509.Certificate, key identity.PublicKey, by *identity.Signer) (*x509.Certificate, error) {
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // never fails
	serial[0] &= 0x7f        // positive
	template.SerialNumber = new(big.Int).SetBytes(serial)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, ed25519.PublicKey(key[:]), by.Crypto())
	if err != nil {
		return nil, fmt.Errorf("pki: making a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func encodePEM(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: cert.Raw})
}

func parsePEM(text []byte) (*x509.Certificate, error) {
	if len(text) > maxCertificateBytes {
		return nil, fmt.Errorf("pki: a certificate of %d bytes", len(text))
	}
	blk, rest := pem.Decode(text)
	if blk == nil || blk.Type != pemCertificate {
		return nil, errors.New("pki: no PEM block of type CERTIFICATE")
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, errors.New("pki: more than one certificate")
	}
	cert, err := x509.ParseCertificate(blk.Bytes)
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	return cert, nil
}

// readCertificate reads a certificate's file.
func readCertificate(path string) (*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	cert, err := parsePEM(text)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return cert, nil
}
