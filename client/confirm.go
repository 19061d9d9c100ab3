package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Status is what a node's ledger says about a transaction.
type Status struct {
	Block    block.Height
	Position int
	Status   string // committed, aborted, failed, rejected
	SQLState string // why it did not commit
	Message  string
}

// Status asks the node in use; nil if its ledger does not have the transaction.
func (c *Client) Status(ctx context.Context, id block.TxID) (s *Status, err error) {
	err = c.any(ctx, func(n *node) error {
		s, err = n.status(ctx, id)
		return err
	})
	return s, err
}

func (n *node) status(ctx context.Context, id block.TxID) (*Status, error) {
	var s Status
	err := n.pool.QueryRow(ctx, `SELECT block, position, status, coalesce(sqlstate, ''), coalesce(message, '')
		FROM blockchain.pgledger WHERE id = $1 ORDER BY status = 'rejected', block LIMIT 1`, id[:]).
		Scan(&s.Block, &s.Position, &s.Status, &s.SQLState, &s.Message)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &s, err
}

// confirmEvery is how often a node is asked for a block that it does not have.
const confirmEvery = 20 * time.Millisecond

// confirm waits until more than half of the nodes have the same outcome of a
// transaction, in the same block.
func (c *Client) confirm(ctx context.Context, id block.TxID) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan Status, len(c.nodes))
	for _, n := range c.nodes {
		go func() { answers <- n.settled(ctx, id) }()
	}
	votes := map[Status]int{}
	for range c.nodes {
		var s Status
		select {
		case s = <-answers:
		case <-ctx.Done():
			return ctx.Err()
		}
		if votes[s]++; votes[s] <= len(c.nodes)/2 {
			continue
		}
		if s.Status != "committed" {
			return fmt.Errorf("client: a majority of nodes has transaction %s as %s in block %d", id, s.Status, s.Block)
		}
		return nil
	}
	return fmt.Errorf("client: the nodes do not agree on transaction %s: %v", id, votes)
}

// settled asks a node until it has the transaction.
func (n *node) settled(ctx context.Context, id block.TxID) Status {
	for {
		if s, err := n.status(ctx, id); err == nil && s != nil {
			return *s
		}
		select {
		case <-time.After(confirmEvery):
		case <-ctx.Done():
			return Status{}
		}
	}
}
