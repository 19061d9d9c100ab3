package blockstore

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// writeFileAtomically replaces dir/name by content: whenever the machine stops,
// there is the old file or the new one. It is the new one for certain once the
// directory has been synced.
func writeFileAtomically(fs vfs.FS, dir, name string, content io.Reader) error {
	tmp := fs.PathJoin(dir, name+tempSuffix)
	f, err := fs.Create(tmp, writeCategory)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return fs.Rename(tmp, fs.PathJoin(dir, name))
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

func isNotExist(err error) bool { return errors.Is(err, os.ErrNotExist) }
