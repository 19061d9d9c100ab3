package chain

import (
	"bytes"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// pgEpochMicros is 2000-01-01, from which timestamptz counts, in Unix time.
const pgEpochMicros = 946684800 * 1_000_000

// timestampTZ turns Unix microseconds into a timestamptz.
func timestampTZ(unixMicros int64) int64 { return unixMicros - pgEpochMicros }

var (
	ledgerTable   = newRowTable(catalog.Ledger)
	ledgerColumns = struct {
		txid, block, position, id, org, name, function, call, status, state, message, detail, snapshot, signed, until, result int
	}{
		columnOf(catalog.Ledger, "txid"), columnOf(catalog.Ledger, "block"), columnOf(catalog.Ledger, "position"),
		columnOf(catalog.Ledger, "id"), columnOf(catalog.Ledger, "org"), columnOf(catalog.Ledger, "username"),
		columnOf(catalog.Ledger, "function"), columnOf(catalog.Ledger, "call"), columnOf(catalog.Ledger, "status"),
		columnOf(catalog.Ledger, "sqlstate"), columnOf(catalog.Ledger, "message"), columnOf(catalog.Ledger, "detail"),
		columnOf(catalog.Ledger, "snapshot"), columnOf(catalog.Ledger, "signed_at"), columnOf(catalog.Ledger, "valid_until"),
		columnOf(catalog.Ledger, "result"),
	}
	ledgerByID = ledgerIndex("pgledger_id_key")

	blocksTable   = newRowTable(catalog.Blocks)
	blocksColumns = struct{ number, hash, prev, time, txs, committed, state int }{
		columnOf(catalog.Blocks, "number"), columnOf(catalog.Blocks, "hash"), columnOf(catalog.Blocks, "prev_hash"),
		columnOf(catalog.Blocks, "block_time"), columnOf(catalog.Blocks, "transactions"),
		columnOf(catalog.Blocks, "committed"), columnOf(catalog.Blocks, "state_hash"),
	}
)

func ledgerIndex(name string) int {
	for i := range catalog.Ledger.Indexes {
		if catalog.Ledger.Indexes[i].Name == name {
			return i
		}
	}
	panic("chain: relation pgledger has no index " + name)
}

// rowWriter writes the chain's own rows of one block into its batch.
type rowWriter struct {
	batch    *mvcc.BlockBatch
	seq      uint32
	xid      uint64
	key, val []byte
	row      []datum.Datum
}

// put writes a row of a table and its index entries.
func (w *rowWriter) put(t *rowTable, row []datum.Datum) error {
	w.key = t.layout.PrimaryKey(w.key[:0], row)
	w.val = t.layout.EncodeRow(w.val[:0], row)
	if err := w.batch.Put(w.key, w.val, w.seq, w.xid); err != nil {
		return err
	}
	w.val = append(w.val[:0], w.key[catalog.PrefixLen:]...)
	for i := 1; i < len(t.table.Indexes); i++ {
		w.key = t.layout.IndexKey(w.key[:0], i, row)
		if err := w.batch.Put(w.key, w.val, w.seq, w.xid); err != nil {
			return err
		}
	}
	return nil
}

// ledger writes the row of a transaction.
func (w *rowWriter) ledger(tx *block.Tx, r *Receipt, snapshot block.Height) error {
	if w.row == nil {
		w.row = ledgerTable.newRow()
	}
	row, c := w.row, &ledgerColumns
	row[c.txid], row[c.block], row[c.position] = datum.Int(int64(r.XID)), datum.Int(int64(r.Height)), datum.Int(int64(r.Position))
	row[c.id], row[c.org], row[c.name] = datum.Bytes(r.ID[:]), datum.Str(tx.User.Org), datum.Str(tx.User.Name)
	row[c.function], row[c.call] = datum.Str(contracts.QualifiedName(&tx.Call)), datum.Str(contracts.CallText(&tx.Call))
	row[c.status] = datum.Str(r.Status.String())
	row[c.state], row[c.message], row[c.detail] = datum.Null, datum.Null, datum.Null
	if r.Err != nil {
		row[c.state], row[c.message] = datum.Str(string(r.Err.Code)), datum.Str(r.Err.Message)
		if r.Err.Detail != "" {
			row[c.detail] = datum.Str(r.Err.Detail)
		}
	}
	row[c.snapshot], row[c.signed] = datum.Int(int64(snapshot)), datum.Int(timestampTZ(tx.Time))
	row[c.until], row[c.result] = datum.Int(int64(tx.ValidUntil)), datum.Null
	if r.Result != nil {
		row[c.result] = datum.Bytes(r.Result)
	}
	return w.put(ledgerTable, row)
}

// block writes the row of a block.
func (w *rowWriter) block(b *block.Block, committed int, state block.Hash) error {
	row, c, hash := blocksTable.newRow(), &blocksColumns, b.Hash()
	row[c.number], row[c.hash] = datum.Int(int64(b.Number)), datum.Bytes(hash[:])
	row[c.prev], row[c.time] = datum.Bytes(b.PrevHash[:]), datum.Int(timestampTZ(b.Timestamp))
	row[c.txs], row[c.committed] = datum.Int(int64(len(b.Txs))), datum.Int(int64(committed))
	row[c.state] = datum.Bytes(state[:])
	return w.put(blocksTable, row)
}

// ledgerRow is what the chain reads of a row of pgledger.
type ledgerRow struct {
	receipt    Receipt
	validUntil block.Height
}

// decodeLedger reads a row. Nothing in the result refers to value.
func decodeLedger(value []byte) (*ledgerRow, error) {
	row, c := ledgerTable.newRow(), &ledgerColumns
	if err := ledgerTable.decoder.Decode(bytes.Clone(value), row); err != nil {
		return nil, err
	}
	status, err := block.ParseStatus(row[c.status].Str())
	if err != nil {
		return nil, fmt.Errorf("chain: corruption: pgledger: %w", err)
	}
	l := &ledgerRow{validUntil: block.Height(row[c.until].Int())}
	r := &l.receipt
	if copy(r.ID[:], row[c.id].Bytes()) != len(r.ID) {
		return nil, fmt.Errorf("chain: corruption: transaction id of %d bytes in the ledger", len(row[c.id].Bytes()))
	}
	r.Height, r.Position = block.Height(row[c.block].Int()), uint32(row[c.position].Int())
	r.XID, r.Status = uint64(row[c.txid].Int()), status
	if !row[c.state].IsNull() {
		r.Err = &pgerr.Error{Code: pgerr.Code(row[c.state].Str()), Message: row[c.message].Str()}
		if !row[c.detail].IsNull() {
			r.Err.Detail = row[c.detail].Str()
		}
	}
	if !row[c.result].IsNull() {
		r.Result = row[c.result].Bytes()
	}
	return l, nil
}

func (l *ledgerRow) consumed() bool {
	code := pgerr.Code("")
	if l.receipt.Err != nil {
		code = l.receipt.Err.Code
	}
	return consumes(l.receipt.Status, code)
}

// LookupReceipt returns the receipt of a transaction id as of the last block:
// that of the first transaction with this id that its user had signed.
func (c *Chain) LookupReceipt(id block.TxID) (*Receipt, bool, error) {
	txn := c.store.Begin(mvcc.AsOf(c.store.Height()), 0)
	r, err := lookup(txn, id)
	if closeErr := txn.Close(); err == nil {
		err = closeErr
	}
	return r, r != nil, err
}

// lookup finds the receipt of an id in the snapshot of txn; nil if there is
// none.
func lookup(txn *mvcc.Txn, id block.TxID) (*Receipt, error) {
	prefix := append([]byte(nil), ledgerTable.layout.IndexPrefix(ledgerByID)...)
	prefix = ledgerTable.layout.AppendKeyColumn(prefix, ledgerByID, 0, datum.Bytes(id[:]))
	it := txn.Scan(rwset.Span{Start: prefix, End: rwset.PrefixEnd(prefix)}, false, mvcc.ReadUnrecorded)
	defer it.Close()
	for it.Next() {
		key := append(append([]byte(nil), ledgerTable.layout.IndexPrefix(0)...), it.Value()...)
		value, _, ok, err := txn.Get(key, mvcc.ReadUnrecorded)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("chain: corruption: index of pgledger names a row that does not exist")
		}
		l, err := decodeLedger(value)
		if err != nil {
			return nil, err
		}
		if l.consumed() {
			l.receipt.Final = true
			return &l.receipt, nil
		}
	}
	return nil, it.Err()
}

// eachLedger calls f for the rows of pgledger of all blocks from a height on,
// as of the last block.
func (c *Chain) eachLedger(from, to block.Height, f func(*ledgerRow) error) error {
	txn := c.store.Begin(mvcc.AsOf(c.store.Height()), 0)
	defer txn.Close()
	span := rwset.Span{Start: ledgerTable.key(block.XID(from, 0)), End: ledgerTable.key(block.XID(to+1, 0))}
	it := txn.Scan(span, false, mvcc.ReadUnrecorded)
	defer it.Close()
	for it.Next() {
		l, err := decodeLedger(it.Value())
		if err == nil {
			err = f(l)
		}
		if err != nil {
			return err
		}
	}
	return it.Err()
}
