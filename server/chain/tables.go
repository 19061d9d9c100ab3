package chain

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/lthash"
)

// tableID is what the keys of a table and of all its indexes begin with.
type tableID = uint32

func tableOf(key []byte) tableID { return binary.BigEndian.Uint32(key) }

// chainsOwn tells of the relations that are left out of digests: their rows
// follow from the blocks and from what is covered.
func chainsOwn(t tableID) bool {
	return t == tableID(ledgerTable.table.OID) || t == tableID(blocksTable.table.OID)
}

// tableDigests are the multiset digests (package lthash) of the tables. The
// elements of a table are the live versions of its rows and index entries:
//
//	key length (varint), key, block 8, sequence 4, transaction number 8, value
//
// so that a digest says who wrote a row and when as well as what is in it. What a
// table contained before is covered by the write sets of the blocks.
//
// Process alone works with them; others read what it stored.
type tableDigests struct {
	sums   map[tableID]*lthash.Sum
	hashes map[tableID]block.Hash // of the sums that are not zero
}

// appendElement appends the element of a row version.
func appendElement(dst, key []byte, v mvcc.Version, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = append(dst, key...)
	dst = binary.BigEndian.AppendUint64(dst, v.Block)
	dst = binary.BigEndian.AppendUint32(dst, v.Seq)
	dst = binary.BigEndian.AppendUint64(dst, v.XID)
	return append(dst, value...)
}

// tablesHash is the digest over the digests of all tables.
func tablesHash(hashes map[tableID]block.Hash) block.Hash {
	b := make([]byte, 0, len(hashes)*36)
	for _, id := range slices.Sorted(maps.Keys(hashes)) {
		h := hashes[id]
		b = append(binary.BigEndian.AppendUint32(b, id), h[:]...)
	}
	return identity.Digest(domainTables, b)
}

// metaTables begins the names of the records with the digests of tables.
const metaTables = "chain/table/"

func metaTable(id tableID) string { return fmt.Sprintf("%s%08x", metaTables, id) }

// load reads the stored digests.
func (d *tableDigests) load(store *mvcc.Store) error {
	d.reset()
	return store.EachMeta(metaTables, func(name string, value []byte) error {
		var id tableID
		if _, err := fmt.Sscanf(strings.TrimPrefix(name, metaTables), "%08x", &id); err != nil {
			return fmt.Errorf("chain: corruption: record %q", name)
		}
		sum, err := lthash.Decode(value)
		if err != nil {
			return fmt.Errorf("chain: corruption: record %q: %w", name, err)
		}
		d.put(id, sum)
		return nil
	})
}

func (d *tableDigests) reset() {
	d.sums, d.hashes = map[tableID]*lthash.Sum{}, map[tableID]block.Hash{}
}

func (d *tableDigests) put(id tableID, sum *lthash.Sum) {
	d.sums[id] = sum
	if delete(d.hashes, id); !sum.IsZero() {
		d.hashes[id] = sum.Hash()
	}
}

// merge takes over what a block changes, stores it with the block and returns the
// digest over all tables.
func (d *tableDigests) merge(changed map[tableID]*lthash.Sum, batch *mvcc.BlockBatch) (block.Hash, error) {
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		sum := new(lthash.Sum)
		if old := d.sums[id]; old != nil {
			*sum = *old
		}
		sum.Add(changed[id])
		d.put(id, sum)
		if err := batch.SetMeta(metaTable(id), sum.Append(nil)); err != nil {
			return block.Hash{}, err
		}
	}
	return tablesHash(d.hashes), nil
}

// tally is one goroutine's share of the changes of a block.
type tally struct {
	sums     map[tableID]*lthash.Sum
	last     tableID // the table of lastSum
	lastSum  *lthash.Sum
	expander lthash.Expander
	element  []byte
}

func newTally() *tally { return &tally{sums: map[tableID]*lthash.Sum{}} }

func (t *tally) sum(id tableID) *lthash.Sum {
	if t.lastSum == nil || t.last != id {
		s := t.sums[id]
		if s == nil {
			s = new(lthash.Sum)
			t.sums[id] = s
		}
		t.last, t.lastSum = id, s
	}
	return t.lastSum
}

// add counts a version that is live from now on, remove one that is no more.
func (t *tally) add(key []byte, v mvcc.Version, value []byte) {
	t.element = appendElement(t.element[:0], key, v, value)
	t.expander.Add(t.sum(tableOf(key)), t.element)
}

func (t *tally) remove(key []byte, v mvcc.Version, value []byte) {
	t.element = appendElement(t.element[:0], key, v, value)
	t.expander.Sub(t.sum(tableOf(key)), t.element)
}

// execution counts what a committed transaction changes. Before reads the state
// that its writes replace.
func (t *tally) execution(x *execution, height block.Height, before *mvcc.Txn) error {
	at := mvcc.Version{Block: height, Seq: x.seq, XID: x.xid}
	return x.work.EachChange(func(key, value []byte, tombstone, replaces bool) error {
		if replaces {
			old, v, ok, err := before.Get(key, mvcc.ReadUnrecorded)
			if err != nil {
				return err
			}
			if !ok {
				return fmt.Errorf("chain: transaction %s replaces row %x, which is not there", x.id, key)
			}
			t.remove(key, v, old)
		}
		if !tombstone {
			t.add(key, at, value)
		}
		return nil
	})
}

// tallyBlock starts to count what the block changes, on all workers, and returns
// what waits for the result: sums by table, to be added to their digests.
// Transactions of the first round replace what the block before left, and those
// are counted beside whatever the caller does meanwhile. What later ones replace
// may be in the batch, which must not be written while it is read: if there are
// any, the work is done on return.
func (c *Chain) tallyBlock(r *run) func() (map[tableID]*lthash.Sum, error) {
	r.winners = r.winners[:0]
	inBatch := false
	for i := range r.list {
		if x := &r.list[i]; x.status == Committed {
			r.winners = append(r.winners, x)
			inBatch = inBatch || x.within
		}
	}
	const perWorker = 8 // less is not worth a goroutine
	n := min(c.workers, (len(r.winners)+perWorker-1)/perWorker)
	tallies := make([]*tally, n)
	faults := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		tallies[i] = newTally()
		wg.Go(func() { faults[i] = c.tallySome(r, tallies[i], &next) })
	}
	wait := func() (map[tableID]*lthash.Sum, error) {
		wg.Wait()
		all := newTally()
		for i := range n {
			if faults[i] != nil {
				return nil, faults[i]
			}
			for id, s := range tallies[i].sums { // any order: sums commute
				all.sum(id).Add(s)
			}
		}
		return all.sums, nil
	}
	if inBatch {
		wg.Wait()
	}
	return wait
}

// tallySome takes one committed transaction after the other.
func (c *Chain) tallySome(r *run, t *tally, next *atomic.Int64) (err error) {
	before := c.store.Begin(mvcc.AsOf(r.height()-1), 0)
	defer func() {
		if closeErr := before.Close(); err == nil {
			err = closeErr
		}
	}()
	for {
		i := int(next.Add(1) - 1)
		if i >= len(r.winners) {
			return nil
		}
		x := r.winners[i]
		if !x.within {
			if err := t.execution(x, r.height(), before); err != nil {
				return err
			}
			continue
		}
		within := r.batch.Begin(mvcc.Snapshot{Height: r.height(), Seq: x.seq - 1}, 0)
		err := t.execution(x, r.height(), within)
		if closeErr := within.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
}
