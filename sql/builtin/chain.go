package builtin

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// The functions that read the blockchain transaction and the snapshot it runs
// on: what a contract has in place of a clock, a random source and a session.
// Their OIDs, 9000 and up, are free in PostgreSQL.

func transaction(c *Ctx, function string) (*TxInfo, error) {
	if c.Tx == nil {
		return nil, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "%s exists only inside a blockchain transaction", function).
			WithHint("Call it in a function of schema blockchain; local queries have now(), current_user and the like.")
	}
	return c.Tx, nil
}

func txEval(function string, f func(tx *TxInfo) datum.Datum) Eval {
	return func(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
		tx, err := transaction(c, function)
		if err != nil {
			return datum.Null, err
		}
		return f(tx), nil
	}
}

// draw is the next 32 pseudorandom bytes of the transaction: the hash of its id
// and of how many were drawn before. Nobody but the signer could choose them,
// and everybody can predict them: they make keys distinct, not secrets.
func (tx *TxInfo) draw() [32]byte {
	var seed [40]byte
	copy(seed[:], tx.ID[:])
	binary.BigEndian.PutUint64(seed[32:], tx.Draws)
	tx.Draws++
	return sha256.Sum256(seed[:])
}

// txUUID is a version 4 UUID made from a draw.
func txUUID(tx *TxInfo) datum.Datum {
	h := tx.draw()
	b := h[:16]
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return datum.Bytes(b)
}

// txRandom is uniform over the multiples of 2^-53 in [0, 1).
func txRandom(tx *TxInfo) datum.Datum {
	h := tx.draw()
	return datum.Float(float64(binary.BigEndian.Uint64(h[:])>>11) / (1 << 53))
}

var chainProcs = []procRow{
	{9000, "tx_time() timestamptz", "s!", "tx_time"},
	{9001, "tx_id() bytea", "s!", "tx_id"},
	{9002, "tx_user() text", "s!", "tx_user"},
	{9003, "tx_org() text", "s!", "tx_org"},
	{9004, "tx_uuid() uuid", "v!", "tx_uuid"},
	{9005, "tx_random() float8", "v!", "tx_random"},
	{9006, "block_height() int8", "s!", "block_height"},
	{9007, "block_timestamp() timestamptz", "s!", "block_timestamp"},
}

var chainEvals = evalMap{
	"tx_time":   txEval("tx_time()", func(tx *TxInfo) datum.Datum { return datum.Int(tx.Time) }),
	"tx_id":     txEval("tx_id()", func(tx *TxInfo) datum.Datum { return datum.Bytes(tx.ID[:]) }),
	"tx_user":   txEval("tx_user()", func(tx *TxInfo) datum.Datum { return datum.Str(tx.User) }),
	"tx_org":    txEval("tx_org()", func(tx *TxInfo) datum.Datum { return datum.Str(tx.Org) }),
	"tx_uuid":   txEval("tx_uuid()", txUUID),
	"tx_random": txEval("tx_random()", txRandom),
	"block_height": func(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
		return datum.Int(int64(c.Height)), nil
	},
	"block_timestamp": func(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
		return datum.Int(c.BlockTime), nil
	},
}
