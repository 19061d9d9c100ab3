package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

// The names in a data directory; see the package comment.
const (
	lockName    = "LOCK"
	genesisName = "genesis"
	keysName    = "keys"
	blocksName  = "blocks"
	stateName   = "state"
	raftName    = block.OrdererRaft
	pbftName    = block.OrdererPBFT
	privateName = "private"
	tempName    = "tmp"

	genesisTempName = "genesis.tmp"
	keySuffix       = ".pem"
)

// layout is a data directory.
type layout struct{ dir string }

func (l layout) lock() string    { return filepath.Join(l.dir, lockName) }
func (l layout) genesis() string { return filepath.Join(l.dir, genesisName) }
func (l layout) keys() string    { return filepath.Join(l.dir, keysName) }
func (l layout) blocks() string  { return filepath.Join(l.dir, blocksName) }
func (l layout) state() string   { return filepath.Join(l.dir, stateName) }

// temp is where queries keep what exceeds work_mem; it is emptied at every start.
func (l layout) temp() string { return filepath.Join(l.dir, tempName) }

// orderer is where an orderer of a protocol keeps what it needs beside the blocks.
func (l layout) orderer(protocol string) string { return filepath.Join(l.dir, protocol) }

// private is schema private: the one part of the directory that neither the
// blocks nor another node can restore.
func (l layout) private() string { return filepath.Join(l.dir, privateName) }

func (l layout) key(user string) string { return filepath.Join(l.keys(), user+keySuffix) }

// acquire makes sure that no other process works on the directory. The lock is
// gone with the process, however it ends.
func (l layout) acquire() (io.Closer, error) {
	lock, err := vfs.Default.Lock(l.lock())
	if err != nil {
		return nil, fmt.Errorf("server: data directory %s is in use by another process: %w", l.dir, err)
	}
	return lock, nil
}

// create makes the directory and refuses one that belongs to something else.
func (l layout) create() error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if there, err := exists(l.genesis()); err != nil || there {
		return err
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	for _, e := range entries {
		switch e.Name() {
		case lockName, keysName, genesisTempName:
			// What an interrupted first start leaves.
		case blocksName, stateName, raftName, pbftName, privateName, tempName:
			return fmt.Errorf("server: %s has %s and no %s: it is damaged, or the rest of a copy", l.dir, e.Name(), genesisName)
		default:
			return fmt.Errorf("server: %s is not empty and is no data directory (it has %s)", l.dir, e.Name())
		}
	}
	return nil
}

// users returns the names of the users whose keys are here, sorted.
func (l layout) users() ([]string, error) {
	entries, err := os.ReadDir(l.keys())
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), keySuffix); ok && !e.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// writeGenesis makes the genesis file, complete and durable, or not at all.
func (l layout) writeGenesis(raw []byte) error {
	tmp := filepath.Join(l.dir, genesisTempName)
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("server: writing the genesis: %w", err)
	}
	if err := os.Rename(tmp, l.genesis()); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return syncDir(l.dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
