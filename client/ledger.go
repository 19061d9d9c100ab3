package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Entry is a transaction as the ledger has it.
type Entry struct {
	Block    block.Height
	Position int
	ID       block.TxID
	Org      string
	User     string
	Function string // qualified name
	Call     string // as SQL text
	Status   string // committed, aborted, failed, rejected
	SQLState string
	Message  string
}

// reconnectPause is the pause after a connection broke.
const reconnectPause = 200 * time.Millisecond

// Subscribe calls f with every transaction of every block from a height on, in
// order and once, until ctx ends or f fails, whose error it returns. It reads the
// ledger and not notifications, of which some may be lost: nothing is left out.
// When a node fails it goes on at another one.
func (c *Client) Subscribe(ctx context.Context, from block.Height, f func(Entry) error) error {
	next := block.XID(from, 0)
	for {
		if err := c.await(ctx, heightOf(next)); err != nil {
			return err
		}
		err := c.entries(ctx, &next, f)
		if user := (userError{}); errors.As(err, &user) {
			return user.error
		}
		if err == nil {
			continue
		}
		if !elsewhere(err) {
			return err
		}
		if err := c.pause(ctx, reconnectPause); err != nil {
			return err
		}
	}
}

// userError is what the caller's own function returned.
type userError struct{ error }

func heightOf(xid uint64) block.Height {
	height, _ := block.SplitXID(xid)
	return height
}

// entries passes on what a node has from a transaction number on, which it moves.
func (c *Client) entries(ctx context.Context, next *uint64, f func(Entry) error) error {
	return c.any(ctx, func(n *node) error {
		// A node may be behind the one that told of the newest block.
		height, err := n.height(ctx)
		if err != nil {
			return err
		}
		end := block.XID(height+1, 0)
		if *next >= end {
			return c.pause(ctx, confirmEvery)
		}
		rows, err := n.pool.Query(ctx, `SELECT block, position, id, org, username, function, call, status, coalesce(sqlstate, ''), coalesce(message, '')
			FROM blockchain.pgledger WHERE txid >= $1 AND txid < $2 ORDER BY txid`, int64(*next), int64(end))
		if err != nil {
			return err
		}
		if err := each(rows, next, f); err != nil {
			return err
		}
		*next = end
		return nil
	})
}

// each calls f with every row and moves next past it.
func each(rows pgx.Rows, next *uint64, f func(Entry) error) error {
	var e Entry
	var id []byte
	_, err := pgx.ForEachRow(rows, []any{&e.Block, &e.Position, &id, &e.Org, &e.User, &e.Function, &e.Call, &e.Status, &e.SQLState, &e.Message}, func() error {
		if len(id) != len(e.ID) {
			return userError{fmt.Errorf("client: the node has a transaction id of %d bytes", len(id))}
		}
		copy(e.ID[:], id)
		if err := f(e); err != nil {
			return userError{err}
		}
		*next = block.XID(e.Block, uint32(e.Position)+1)
		return nil
	})
	return err
}

// await waits until a block is known.
func (c *Client) await(ctx context.Context, height block.Height) error {
	tick := time.NewTicker(confirmEvery)
	defer tick.Stop()
	for c.height.Load() < height {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// follow keeps the height up to date: it listens at the node in use, and asks
// again after a connection broke.
func (c *Client) follow(ctx context.Context) {
	for ctx.Err() == nil {
		_ = c.any(ctx, func(n *node) error { return c.listen(ctx, n) }) // it ends with the connection
		select {
		case <-time.After(reconnectPause):
		case <-ctx.Done():
		}
	}
}

func (c *Client) listen(ctx context.Context, n *node) error {
	conn, err := pgx.ConnectConfig(ctx, n.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN tallystick_block"); err != nil {
		return err
	}
	if err := c.ask(ctx, n); err != nil {
		return err
	}
	for {
		note, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		var b struct {
			Height uint64 `json:"height"`
		}
		if json.Unmarshal([]byte(note.Payload), &b) == nil {
			c.raise(b.Height)
		}
	}
}

// Provenance returns all versions of the rows of a table that satisfy a condition,
// "" for all of them, oldest first, with the columns of provenance.<table>: those
// of the table, and xmin, xmax, creator_block and deleter_block. Arguments are
// those of the condition. The rows must be closed.
func (c *Client) Provenance(ctx context.Context, table, condition string, args ...any) (pgx.Rows, error) {
	query := "SELECT * FROM " + pgx.Identifier{"provenance", table}.Sanitize()
	if condition != "" {
		query += " WHERE " + condition
	}
	return c.Query(ctx, query+" ORDER BY creator_block, xmin", args...)
}
