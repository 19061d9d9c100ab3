package pki

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tallystick/tallystick/identity"
)

// RevokedKeys is a file of keys that a machine refuses, one in hexadecimal a line,
// with # before comments. It is read again when it changes; a file that is not
// there refuses nobody.
type RevokedKeys struct {
	path string
	log  func(err error)

	mu     sync.Mutex
	keys   map[identity.PublicKey]bool
	seen   stamp
	looked time.Time
}

// OpenRevokedKeys reads the file. log is told why a changed one is not used; what
// was refused before stays so.
func OpenRevokedKeys(path string, log func(err error)) (*RevokedKeys, error) {
	r := &RevokedKeys{path: path, log: log}
	return r, r.load()
}

// Has reports whether a key is in the file.
func (r *RevokedKeys) Has(key identity.PublicKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) >= reloadAfter {
		if err := r.load(); err != nil && r.log != nil {
			r.log(err)
		}
	}
	return r.keys[key]
}

func (r *RevokedKeys) load() error {
	r.looked = time.Now()
	info, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		r.keys, r.seen = nil, stamp{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	now := stamp{info.ModTime(), info.Size()}
	if now == r.seen {
		return nil
	}
	keys, err := readKeys(r.path)
	if err == nil {
		r.keys, r.seen = keys, now
	}
	return err
}

func readKeys(path string) (map[identity.PublicKey]bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	defer f.Close()
	keys := map[identity.PublicKey]bool{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		key, err := identity.ParsePublicKey(text)
		if err != nil {
			return nil, fmt.Errorf("pki: %s, line %d: %w", path, n, err)
		}
		keys[key] = true
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("pki: %s: %w", path, err)
	}
	return keys, nil
}
