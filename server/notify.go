package server

import (
	"encoding/json"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/server/chain"
)

// The channels on which a node tells its sessions what it has processed.
const (
	// BlockChannel has one notification per block: height, state hash, number of
	// transactions.
	BlockChannel = "tallystick_block"
	// TxChannel has one per transaction: id, status, SQLSTATE ("" if it
	// committed), block.
	TxChannel = "tallystick_tx"
)

type blockNote struct {
	Height       block.Height `json:"height"`
	StateHash    string       `json:"state_hash"`
	Transactions int          `json:"transactions"`
}

type txNote struct {
	ID       string       `json:"id"`
	Status   string       `json:"status"`
	SQLState string       `json:"sqlstate"`
	Block    block.Height `json:"block"`
}

// notify tells listening sessions, and whatever else of the node waits for it,
// about a block. It runs in the loop that processes blocks and makes nothing that
// nobody wants.
func (n *Node) notify(height block.Height, receipts []chain.Receipt) {
	n.processed()
	engine := n.state.engine
	if engine.Listening(TxChannel) {
		for i := range receipts {
			r := &receipts[i]
			note := txNote{ID: r.ID.String(), Status: r.Status.String(), Block: height}
			if r.Err != nil {
				note.SQLState = string(r.Err.Code)
			}
			n.send(TxChannel, note)
		}
	}
	if !engine.Listening(BlockChannel) {
		return
	}
	hash, err := n.state.chain.StateHash(height)
	if err != nil {
		n.log.Error("the state hash of a block is not readable", "block", height, "error", err)
		return
	}
	n.send(BlockChannel, blockNote{Height: height, StateHash: hash.String(), Transactions: len(receipts)})
}

func (n *Node) send(channel string, note any) {
	payload, err := json.Marshal(note)
	if err != nil {
		n.log.Error("a notification cannot be written", "channel", channel, "error", err)
		return
	}
	n.state.engine.Notify(channel, string(payload), 0)
}
