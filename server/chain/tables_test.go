package chain

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/lthash"
	"github.com/tallystick/tallystick/mvcc/rwset"
)

// checkTables compares the digests that followed the writes with those of the
// rows that are there.
func (n *node) checkTables() {
	n.tb.Helper()
	want := map[uint32]*lthash.Sum{}
	var x lthash.Expander
	txn := n.store.Begin(mvcc.AsOf(n.store.Height()), 0)
	defer txn.Close()
	it := txn.Scan(rwset.Span{End: bytes.Repeat([]byte{0xff}, 9)}, false, mvcc.ReadUnrecorded)
	defer it.Close()
	for it.Next() {
		id := binary.BigEndian.Uint32(it.Key())
		if id == uint32(ledgerTable.table.OID) || id == uint32(blocksTable.table.OID) {
			continue
		}
		if want[id] == nil {
			want[id] = new(lthash.Sum)
		}
		v := it.Version()
		e := binary.AppendUvarint(nil, uint64(len(it.Key())))
		e = append(e, it.Key()...)
		e = binary.BigEndian.AppendUint64(e, v.Block)
		e = binary.BigEndian.AppendUint32(e, v.Seq)
		e = binary.BigEndian.AppendUint64(e, v.XID)
		x.Add(want[id], append(e, it.Value()...))
	}
	if err := it.Err(); err != nil {
		n.tb.Fatal(err)
	}
	for id, sum := range n.chain.tables.sums {
		if w := want[id]; w == nil && !sum.IsZero() || w != nil && *w != *sum {
			n.tb.Fatalf("height %d: digest of table %d is not that of its rows", n.store.Height(), id)
		}
		delete(want, id)
	}
	for id := range want {
		n.tb.Fatalf("height %d: table %d has no digest", n.store.Height(), id)
	}
	step, err := n.chain.Step(n.store.Height())
	if err != nil || step.Tables != tablesHash(n.chain.tables.hashes) {
		n.tb.Fatalf("height %d: recorded step %+v, %v", n.store.Height(), step, err)
	}
}

// TestTableDigests follows updates, deletions and rows that are written more than
// once in a block, by rounds and by system contracts, and across a restart.
func TestTableDigests(t *testing.T) {
	for name, change := range map[string]func(*block.Params){
		"abort":     nil,
		"reexecute": func(p *block.Params) { p.Conflicts = block.ConflictsReexecute },
	} {
		t.Run(name, func(t *testing.T) {
			s, n := bankNode(t, testGenesis(change))
			n.checkTables()
			var txs []*block.Tx
			for i := range 20 {
				txs = append(txs, s.tx(alice, "transfer", int64(i), 1+i%2, 2-i%2, num("1")))
			}
			n.process(s.block(txs...))
			n.checkTables()
			key := signerOf(70).Public()
			n.process(s.block(
				s.tx(admin1, "create_user", "org1", "carol", "client", key[:]),
				s.tx(admin1, "update_user", "org1", "carol", key[:]),
				s.tx(admin1, "delete_user", "org1", "carol"),
			))
			n.checkTables()
			n.reopen()
			n.checkTables()
			n.process(s.deployBlock(2, "DROP FUNCTION greet(text)"))
			n.checkTables()
		})
	}
}
