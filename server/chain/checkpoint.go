package chain

import (
	"encoding/binary"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

var (
	checkpointsTable   = newRowTable(catalog.Checkpoints)
	checkpointsColumns = struct{ height, state, recorded int }{
		columnOf(catalog.Checkpoints, "height"), columnOf(catalog.Checkpoints, "state_hash"), columnOf(catalog.Checkpoints, "recorded_block"),
	}
	marksTable   = newRowTable(catalog.CheckpointVotes)
	marksColumns = struct{ org, name, state, signature int }{
		columnOf(catalog.CheckpointVotes, "org"), columnOf(catalog.CheckpointVotes, "username"),
		columnOf(catalog.CheckpointVotes, "state_hash"), columnOf(catalog.CheckpointVotes, "signature"),
	}
)

// checkpointRow is a row of checkpoints.
type checkpointRow struct {
	height, recorded block.Height
	state            block.Hash
}

func decodeCheckpoint(value []byte) (*checkpointRow, error) {
	row, c := checkpointsTable.newRow(), &checkpointsColumns
	if err := checkpointsTable.decoder.Decode(value, row); err != nil {
		return nil, err
	}
	if n := len(row[c.state].Bytes()); n != len(block.Hash{}) {
		return nil, fmt.Errorf("chain: corruption: state hash of a checkpoint has %d bytes", n)
	}
	return &checkpointRow{
		height: block.Height(row[c.height].Int()), recorded: block.Height(row[c.recorded].Int()),
		state: block.Hash(row[c.state].Bytes()),
	}, nil
}

// CheckpointFrom is the first recorded checkpoint at or above a height, with the
// votes that agree with it; nil if there is none.
func (c *Chain) CheckpointFrom(height block.Height) (*block.Checkpoint, error) {
	return c.checkpoint(rwset.Span{Start: checkpointsTable.key(height), End: rwset.PrefixEnd(checkpointsTable.layout.IndexPrefix(0))}, false)
}

// LastCheckpoint is the highest recorded checkpoint; nil if there is none.
func (c *Chain) LastCheckpoint() (*block.Checkpoint, error) {
	prefix := checkpointsTable.layout.IndexPrefix(0)
	return c.checkpoint(rwset.Span{Start: prefix, End: rwset.PrefixEnd(prefix)}, true)
}

func (c *Chain) checkpoint(span rwset.Span, reverse bool) (*block.Checkpoint, error) {
	txn := c.store.Begin(mvcc.AsOf(c.store.Height()), 0)
	defer txn.Close()
	it := txn.Scan(span, reverse, mvcc.ReadUnrecorded)
	defer it.Close()
	if !it.Next() {
		return nil, it.Err()
	}
	row, err := decodeCheckpoint(it.Value())
	if err != nil {
		return nil, err
	}
	point := &block.Checkpoint{Height: row.height, State: row.state}
	point.Votes, err = checkpointVotes(txn, row)
	return point, err
}

// checkpointVotes are the votes for a checkpoint, in the order of their key.
func checkpointVotes(txn *mvcc.Txn, point *checkpointRow) (votes []block.CheckpointVote, err error) {
	start := marksTable.key(point.height)
	it := txn.Scan(rwset.Span{Start: start, End: rwset.PrefixEnd(start)}, false, mvcc.ReadUnrecorded)
	defer it.Close()
	row, c := marksTable.newRow(), &marksColumns
	for it.Next() {
		if err := marksTable.decoder.Decode(it.Value(), row); err != nil {
			return nil, err
		}
		if string(row[c.state].Bytes()) != string(point.state[:]) {
			continue
		}
		v := block.CheckpointVote{Node: identity.UserID{Org: string(row[c.org].Bytes()), Name: string(row[c.name].Bytes())}}
		copy(v.Signature[:], row[c.signature].Bytes())
		votes = append(votes, v)
	}
	return votes, it.Err()
}

// CheckpointDue is the state hash that a node should have submitted: that of the
// last block whose number is a multiple of the network's checkpoint interval,
// unless all blocks since the multiple before had nothing but checkpoints, which
// would make an idle network go on for ever. Who submits keeps in mind up to which
// height it has done so.
func (c *Chain) CheckpointDue() (height block.Height, state block.Hash, due bool, err error) {
	c.mu.RLock()
	height = c.due
	c.mu.RUnlock()
	if height == 0 {
		return 0, block.Hash{}, false, nil
	}
	state, err = c.StateHash(height)
	return height, state, err == nil, err
}

// passBusy follows which checkpoints are due.
func (c *Chain) passBusy(height block.Height, busy bool) {
	if busy {
		c.busy = height
	}
	if every := c.params.Load().CheckpointEvery; height%every == 0 && c.busy+every > height {
		c.due = height
	}
}

// CheckpointTx makes the transaction with which a node submits its state hash of a
// height, as CheckpointDue returned them. The time is Unix microseconds.
func (c *Chain) CheckpointTx(node identity.UserID, signer *identity.Signer, height block.Height, state block.Hash, now int64) (*block.Tx, error) {
	digest := block.CheckpointDigest(height, state)
	signature := signer.Sign(digest[:])
	call, err := contracts.MakeCall(catalog.Blockchain, system.SubmitCheckpoint,
		[]datum.Type{datum.T(datum.Int8), datum.T(datum.Bytea), datum.T(datum.Bytea)},
		[]datum.Datum{datum.Int(int64(height)), datum.Bytes(state[:]), datum.Bytes(signature[:])})
	if err != nil {
		return nil, err
	}
	tip := c.Height()
	tx := &block.Tx{Network: c.network, User: node, Call: call, Time: now, ValidUntil: tip + c.params.Load().ValidityWindow}
	if c.speculative() {
		tx.Snapshot = tip
	}
	binary.BigEndian.PutUint64(tx.Nonce[:], height)
	return tx, tx.Sign(signer)
}

func isCheckpoint(tx *block.Tx) bool {
	return tx.Call.Name == system.SubmitCheckpoint && isSystem(tx)
}

// noteCheckpoint keeps what a system contract wrote to checkpoints.
func (r *run) noteCheckpoint(value []byte) error {
	point, err := decodeCheckpoint(value)
	if err == nil {
		r.points = append(r.points, *point)
	}
	return err
}
