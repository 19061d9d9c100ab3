package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeyFileRoundTrip(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "admin.key")
	s, err := GenerateSigner(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SaveKey(path); err != nil {
		t.Fatal(err)
	}
	got, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Public() != s.Public() || got.Sign([]byte("m")) != s.Sign([]byte("m")) {
		t.Error("another key came back")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("files left: %v, %v", entries, err)
	}
}

func TestSaveKeyNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "k")
	first := testSigner(1)
	if err := first.SaveKey(path); err != nil {
		t.Fatal(err)
	}
	if err := testSigner(2).SaveKey(path); err == nil {
		t.Fatal("the file was replaced")
	}
	if got, err := LoadKey(path); err != nil || got.Public() != first.Public() {
		t.Errorf("the first key is gone: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("files left: %v", entries)
	}
}

func TestLoadKeyRefuses(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, content, want string
		mode                os.FileMode
	}{
		{"empty", "", "no PEM block", 0o600},
		{"text", "hello\n", "no PEM block", 0o600},
		{"type", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), "no PEM block", 0o600},
		{"der", string(pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: []byte{1, 2}})), "private key in", 0o600},
		{"curve", string(pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})), "not an Ed25519 key", 0o600},
		{"long", strings.Repeat("x", maxKeyFileBytes+1), "longer", 0o600},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "k")
			if err := os.WriteFile(path, []byte(tt.content), tt.mode); err != nil {
				t.Fatal(err)
			}
			if _, err := LoadKey(path); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o610, 0o660} {
		path := filepath.Join(t.TempDir(), "k")
		if err := testSigner(1).SaveKey(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKey(path); err == nil || !strings.Contains(err.Error(), "group or world access") {
			t.Errorf("mode %#o: %v", mode, err)
		}
	}
	if _, err := LoadKey(t.TempDir()); err == nil {
		t.Error("a directory was loaded")
	}
}

func TestParsePublicKey(t *testing.T) {
	k := testSigner(1).Public()
	if got, err := ParsePublicKey(k.String()); err != nil || got != k {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []string{"", "00", k.String() + "00", "zz" + k.String()[2:]} {
		if _, err := ParsePublicKey(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestEncryptedKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	key := NewSigner([32]byte{7})
	if err := key.SaveEncryptedKey(path, nil); err == nil {
		t.Error("an empty passphrase was taken")
	}
	if err := key.SaveEncryptedKey(path, []byte("tally")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "BEGIN ENCRYPTED PRIVATE KEY") {
		t.Errorf("%s, %v", text, err)
	}
	say := func(s string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(s), nil } }
	if got, err := LoadEncryptedKey(path, say("tally")); err != nil || got.Public() != key.Public() {
		t.Errorf("%v", err)
	}
	if _, err := LoadEncryptedKey(path, say("stick")); err == nil {
		t.Error("a wrong passphrase was taken")
	}
	if _, err := LoadEncryptedKey(path, nil); !errors.Is(err, ErrEncrypted) {
		t.Errorf("without a passphrase: %v", err)
	}
	if _, err := LoadKey(path); !errors.Is(err, ErrEncrypted) {
		t.Errorf("LoadKey: %v", err)
	}
	plain := filepath.Join(t.TempDir(), "plain.pem")
	if err := key.SaveKey(plain); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadEncryptedKey(plain, nil); err != nil || got.Public() != key.Public() {
		t.Errorf("a plain key: %v", err)
	}
}
