package identity

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/youmark/pkcs8"
)

const (
	pemType          = "PRIVATE KEY"           // RFC 7468, PKCS #8
	pemTypeEncrypted = "ENCRYPTED PRIVATE KEY" // the same, encrypted
	maxKeyFileBytes  = 16 << 10
)

// SaveKey writes the private key to a new file as PEM (PKCS #8), readable by
// its owner only. The file appears complete and durable or not at all; an
// existing file is never replaced, for a lost key cannot be made again.
func (s *Signer) SaveKey(path string) error {
	der, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return fmt.Errorf("identity: encoding a private key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
	if err := writeNewFile(path, text); err != nil {
		return fmt.Errorf("identity: saving a private key: %w", err)
	}
	return nil
}

// encryption is how keys are encrypted: PBES2 with scrypt at about 0.1 s and
// 32 MiB a try, AES-256 in CBC mode. OpenSSL reads it.
var encryption = pkcs8.Opts{
	Cipher:  pkcs8.AES256CBC,
	KDFOpts: pkcs8.ScryptOpts{SaltSize: 16, CostParameter: 1 << 15, BlockSize: 8, ParallelizationParameter: 1},
}

// SaveEncryptedKey is SaveKey with a passphrase, without which the file is of no
// use (PKCS #8, PBES2). An empty passphrase is refused.
func (s *Signer) SaveEncryptedKey(path string, passphrase []byte) error {
	if len(passphrase) == 0 {
		return errors.New("identity: saving a private key: the passphrase is empty")
	}
	der, err := pkcs8.MarshalPrivateKey(s.key, passphrase, &encryption)
	if err != nil {
		return fmt.Errorf("identity: encrypting a private key: %w", err)
	}
	if err := writeNewFile(path, pem.EncodeToMemory(&pem.Block{Type: pemTypeEncrypted, Bytes: der})); err != nil {
		return fmt.Errorf("identity: saving a private key: %w", err)
	}
	return nil
}

// ErrEncrypted is the error for an encrypted key file without a passphrase.
var ErrEncrypted = errors.New("the private key is encrypted: its passphrase is needed")

// LoadEncryptedKey is LoadKey for a file that may be encrypted. passphrase is
// called only if it is; nil gives [ErrEncrypted].
func LoadEncryptedKey(path string, passphrase func() ([]byte, error)) (*Signer, error) {
	blk, err := readKeyBlock(path)
	if err != nil {
		return nil, err
	}
	if blk.Type == pemType {
		return parseKey(path, blk.Bytes)
	}
	if passphrase == nil {
		return nil, fmt.Errorf("identity: %s: %w", path, ErrEncrypted)
	}
	secret, err := passphrase()
	if err != nil {
		return nil, fmt.Errorf("identity: %s: %w", path, err)
	}
	parsed, _, err := pkcs8.ParsePrivateKey(blk.Bytes, secret)
	if err != nil {
		return nil, fmt.Errorf("identity: private key in %s: the passphrase is wrong, or the file is damaged (%w)", path, err)
	}
	return asSigner(path, parsed)
}

// LoadKey reads a file that [Signer.SaveKey] wrote (or any PEM PKCS #8 file
// with an Ed25519 key). It refuses a file that anyone but its owner may
// access.
func LoadKey(path string) (*Signer, error) {
	blk, err := readKeyBlock(path)
	if err != nil {
		return nil, err
	}
	if blk.Type != pemType {
		return nil, fmt.Errorf("identity: %s: %w", path, ErrEncrypted)
	}
	return parseKey(path, blk.Bytes)
}

// readKeyBlock reads the PEM block of a key file.
func readKeyBlock(path string) (*pem.Block, error) {
	text, err := readPrivateFile(path)
	if err != nil {
		return nil, fmt.Errorf("identity: loading a private key: %w", err)
	}
	blk, _ := pem.Decode(text)
	if blk == nil || blk.Type != pemType && blk.Type != pemTypeEncrypted {
		return nil, fmt.Errorf("identity: %s holds no PEM block of type %q", path, pemType)
	}
	return blk, nil
}

func parseKey(path string, der []byte) (*Signer, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("identity: private key in %s: %w", path, err)
	}
	return asSigner(path, parsed)
}

func asSigner(path string, parsed any) (*Signer, error) {
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("identity: private key in %s is not an Ed25519 key", path)
	}
	return newSigner(key), nil
}

func readPrivateFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The mode is asked of the open file, not of the path: another file could
	// take its name in between.
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s has group or world access (mode %#o); it should be 0600 or less", path, perm)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFileBytes+1))
	if err == nil && len(text) > maxKeyFileBytes {
		err = fmt.Errorf("%s is longer than a key file can be", path)
	}
	return text, err
}

// writeNewFile creates path with mode 0600. The content is synced under a
// temporary name first and then linked to the final one, which fails when that
// exists; the directory is synced last.
func writeNewFile(path string, content []byte) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, ".key-*") // CreateTemp gives mode 0600
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, os.Remove(tmp.Name()))
		if err == nil {
			err = syncDir(dir)
		}
	}()
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Link(tmp.Name(), path)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
