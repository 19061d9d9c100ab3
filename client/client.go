package client

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Client is a user of a network.
type Client struct {
	cfg     Config
	network block.Hash
	nodes   []*node
	current atomic.Int32  // index of the node in use
	height  atomic.Uint64 // newest block that any node told of

	mu        sync.Mutex
	functions map[string]*function // by what was called

	stop    context.CancelFunc
	running sync.WaitGroup
}

// node is one of the nodes, with its connections.
type node struct {
	url  string
	pool *pgxpool.Pool
}

// Connect connects to the first node that answers.
func Connect(ctx context.Context, cfg Config) (*Client, error) {
	cfg.EnsureDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, network: cfg.Network, functions: map[string]*function{}}
	for _, url := range cfg.Nodes {
		n, err := open(url, cfg.MaxConns)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.nodes = append(c.nodes, n)
	}
	if err := c.meet(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	following, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.running.Go(func() { c.follow(following) })
	return c, nil
}

func open(url string, maxConns int32) (*node, error) {
	conf, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	conf.MaxConns = maxConns
	pool, err := pgxpool.NewWithConfig(context.Background(), conf)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &node{url: url, pool: pool}, nil
}

// Close ends all connections.
func (c *Client) Close() error {
	if c.stop != nil {
		c.stop()
		c.running.Wait()
	}
	for _, n := range c.nodes {
		n.pool.Close()
	}
	return nil
}

// meet finds a node that answers and checks that it is of the right network.
func (c *Client) meet(ctx context.Context) error {
	return c.any(ctx, func(n *node) error {
		network, err := n.network(ctx)
		if err != nil {
			return err
		}
		if c.network.IsZero() {
			c.network = network
		}
		if network != c.network {
			return fmt.Errorf("client: node is of network %s, not %s", network, c.network)
		}
		return c.ask(ctx, n)
	})
}

// network asks a node for the id of its network.
func (n *node) network(ctx context.Context) (h block.Hash, err error) {
	var text string
	if err := n.pool.QueryRow(ctx, "SHOW tallystick.network").Scan(&text); err != nil {
		return h, err
	}
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(h) {
		return h, fmt.Errorf("client: the node calls its network %q", text)
	}
	copy(h[:], raw)
	return h, nil
}

// ask asks a node for its height.
func (c *Client) ask(ctx context.Context, n *node) error {
	height, err := n.height(ctx)
	if err == nil {
		c.raise(height)
	}
	return err
}

func (n *node) height(ctx context.Context) (block.Height, error) {
	var height int64
	err := n.pool.QueryRow(ctx, "SELECT max(number) FROM blockchain.blocks").Scan(&height)
	return uint64(height), err
}

// raise notes that some node has a block.
func (c *Client) raise(height uint64) {
	for {
		old := c.height.Load()
		if height <= old || c.height.CompareAndSwap(old, height) {
			return
		}
	}
}

// Height is the newest block that the client knows of.
func (c *Client) Height() block.Height { return c.height.Load() }

// Network is the id of the network.
func (c *Client) Network() block.Hash { return c.network }

// any tries f with the node in use and then with the others, and stays with the
// one where it succeeds. An error that is the server's own answer is not tried
// elsewhere.
func (c *Client) any(ctx context.Context, f func(*node) error) error {
	first := int(c.current.Load())
	var failures error
	for i := range c.nodes {
		at := (first + i) % len(c.nodes)
		err := f(c.nodes[at])
		if err == nil || !elsewhere(err) || ctx.Err() != nil {
			c.current.Store(int32(at))
			return err
		}
		failures = errors.Join(failures, fmt.Errorf("node %d: %w", at+1, err))
	}
	return failures
}

// Query queries the node in use, or the next one if it cannot be reached. The
// rows must be closed.
func (c *Client) Query(ctx context.Context, sql string, args ...any) (rows pgx.Rows, err error) {
	err = c.any(ctx, func(n *node) error {
		rows, err = n.pool.Query(ctx, sql, args...)
		return err
	})
	return rows, err
}
