package sql

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Transactions that wait together become one block, but for those that met
// another of the group: the next block decides on them.
func TestCommitGroup(t *testing.T) {
	store, err := mvcc.Open("store", mvcc.Options{FS: vfs.NewMem(), Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	p, err := NewPrivate(store)
	if err != nil {
		t.Fatal(err)
	}
	key := func(s string) []byte { return append(catalog.Prefix(100, 1), s...) }
	request := func(write string, f func(txn *mvcc.Txn)) *commitRequest {
		txn := p.begin()
		if f != nil {
			f(txn)
		}
		if err := txn.Put(key(write), []byte("v")); err != nil {
			t.Fatal(err)
		}
		txn.Close()
		return &commitRequest{txn: txn, footprint: txn.Footprint()}
	}
	read := func(k string) func(*mvcc.Txn) {
		return func(txn *mvcc.Txn) {
			if _, _, _, err := txn.Get(key(k), mvcc.ReadRecorded); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := func(txn *mvcc.Txn) {
		txn.NoteRead(rwset.Span{Start: catalog.Prefix(100, 1), End: rwset.PrefixEnd(catalog.Prefix(100, 1))}, false)
	}
	first := request("a", nil)
	other := request("b", read("c"))
	reads := request("d", read("a"))
	scans := request("e", all)
	again := request("b", nil)
	row := &commitRequest{key: key("z"), value: []byte("v")}
	p.queue = []*commitRequest{other, reads, first, scans, again, row}
	before := store.Height()
	p.commitGroup(first)
	if got := store.Height() - before; got != 1 {
		t.Errorf("%d blocks", got)
	}
	for name, r := range map[string]*commitRequest{"first": first, "other": other, "row": row} {
		if !r.done || r.err != nil {
			t.Errorf("%s: done %t, %v", name, r.done, r.err)
		}
	}
	if len(p.queue) != 3 {
		t.Fatalf("%d wait", len(p.queue))
	}
	for _, r := range []*commitRequest{reads, scans, again} {
		if r.done {
			t.Error("one that met another was decided on")
		}
	}
	p.commitGroup(reads)
	for _, r := range []*commitRequest{reads, scans, again} {
		if !r.done || pgerr.CodeOf(r.err) != pgerr.SerializationFailure {
			t.Errorf("done %t, %v", r.done, r.err)
		}
	}
}
