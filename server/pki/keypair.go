package pki

import (
	"crypto/ed25519"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tallystick/tallystick/identity"
)

// reloadAfter is how long a file is taken to be unchanged without a look.
const reloadAfter = time.Second

// KeyPair is a certificate with its private key, read from files that may be
// replaced while connections are made.
type KeyPair struct {
	certFile, keyFile string
	passphrase        func() ([]byte, error)
	log               func(err error)

	mu      sync.Mutex
	current *tls.Certificate
	signer  *identity.Signer
	seen    [2]stamp
	looked  time.Time
}

// stamp tells versions of a file apart.
type stamp struct {
	modified time.Time
	size     int64
}

// OpenKeyPair reads a certificate and its key. The passphrase is asked for if the
// key is encrypted, and may be nil. log is told why new files are not used; the
// earlier ones stay in use then.
func OpenKeyPair(certFile, keyFile string, passphrase func() ([]byte, error), log func(err error)) (*KeyPair, error) {
	p := &KeyPair{certFile: certFile, keyFile: keyFile, passphrase: passphrase, log: log}
	seen, err := p.stamps()
	if err != nil {
		return nil, err
	}
	if err := p.load(seen); err != nil {
		return nil, err
	}
	return p, nil
}

// Current is the certificate as of now.
func (p *KeyPair) Current() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return p.current, nil
}

// Signer is the private key as of now.
func (p *KeyPair) Signer() *identity.Signer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return p.signer
}

// refresh reads files that have changed. While one is new and the other is not
// yet, they do not fit: that is tried again.
func (p *KeyPair) refresh() {
	if time.Since(p.looked) < reloadAfter {
		return
	}
	p.looked = time.Now()
	seen, err := p.stamps()
	if err == nil && seen != p.seen {
		err = p.load(seen)
	}
	if err != nil && p.log != nil {
		p.log(err)
	}
}

func (p *KeyPair) stamps() (s [2]stamp, err error) {
	for i, file := range []string{p.certFile, p.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return s, fmt.Errorf("pki: %w", err)
		}
		s[i] = stamp{info.ModTime(), info.Size()}
	}
	return s, nil
}

func (p *KeyPair) load(seen [2]stamp) error {
	cert, err := readCertificate(p.certFile)
	if err != nil {
		return err
	}
	signer, err := identity.LoadEncryptedKey(p.keyFile, p.passphrase)
	if err != nil {
		return err
	}
	if public, ok := cert.PublicKey.(ed25519.PublicKey); !ok || identity.PublicKey(public) != signer.Public() {
		return fmt.Errorf("pki: %s is not the certificate of the key in %s", p.certFile, p.keyFile)
	}
	p.current = &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: signer.Crypto(), Leaf: cert}
	p.signer, p.seen = signer, seen
	return nil
}
