package mvcc

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestStoreSetMeta: a record that is set between two blocks is there after a crash,
// without any block.
func TestStoreSetMeta(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, err := Open("state", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	b := s.NewBlockBatch(1)
	if err := b.SetMeta("a", []byte("of a block")); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(b, true); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"one", "two"} {
		if err := s.SetMeta("a", []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	clone := fs.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.SetMeta("a", nil); err == nil {
		t.Error("a closed store was written to")
	}
	s, err = Open("state", Options{FS: clone})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if value, ok, err := s.Meta("a"); err != nil || !ok || string(value) != "two" || s.Height() != 1 {
		t.Errorf("after a crash the record is %q at height %d, %v", value, s.Height(), err)
	}
}
