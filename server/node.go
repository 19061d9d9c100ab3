package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/server/flow"
	"github.com/tallystick/tallystick/server/pgwire"
	"github.com/tallystick/tallystick/server/wallet"
	"github.com/tallystick/tallystick/sql/exec"
)

// DevOptions say how to run a development network: one organization, one node,
// an embedded orderer, and a signing endpoint for the users whose keys the data
// directory has.
type DevOptions struct {
	Dir     string // data directory; made at the first start
	Listen  string // host:port for PostgreSQL clients; must be on loopback
	Choices Choices
	Workers int // as in chain.Options
	Logger  *slog.Logger
}

// Node is a node that was opened.
type Node struct {
	log      *slog.Logger
	genesis  *block.Genesis
	blocks   *blockstore.Store
	state    *state
	orderer  embedded
	flow     *flow.Flow
	wallet   *wallet.Wallet
	front    *pgwire.Server
	listener net.Listener
	scrubber *scrubber
	// checkpoints is nil in a development network.
	checkpoints *checkpointer

	mesh *mesh // nil in a development network
	// closers undo what was opened, the last one first.
	closers []func() error
}

const (
	// maxInFlight bounds the blocks that are ordered and not yet executed: a
	// node that falls behind makes its clients wait instead.
	maxInFlight = 8
	// drainTimeout is how long statements may go on once the node is to end.
	drainTimeout = 10 * time.Second
)

// OpenDev opens the node of a development network, makes the network at the
// first start, and recovers. After it the listener is bound; Serve answers.
func OpenDev(opts DevOptions) (*Node, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	n := &Node{log: opts.Logger}
	if err := n.open(&opts); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) open(opts *DevOptions) error {
	l := layout{opts.Dir}
	if err := l.create(); err != nil {
		return err
	}
	lock, err := l.acquire()
	if err != nil {
		return err
	}
	n.onClose(lock.Close)
	if n.genesis, err = devGenesis(l, &opts.Choices); err != nil {
		return err
	}
	if err := n.openStores(l); err != nil {
		return err
	}
	if err := n.state.openChain(n.blocks, opts.Workers); err != nil {
		return err
	}
	n.onClose(func() error { n.state.chain.Close(); return nil })
	n.scrubber = newScrubber(n.state.chain, n.log)
	if err := n.startOrdering(l); err != nil {
		return err
	}
	if err := n.openWallet(l); err != nil {
		return err
	}
	if n.front, err = pgwire.New(n.frontConfig()); err != nil {
		return err
	}
	if n.listener, err = net.Listen("tcp", opts.Listen); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	n.onClose(func() error {
		if err := n.listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return nil
}

func (n *Node) onClose(f func() error) { n.closers = append(n.closers, f) }

// openStores opens block store and state.
func (n *Node) openStores(l layout) error {
	var err error
	n.blocks, err = blockstore.Open(l.blocks(), blockstore.Options{Genesis: n.genesis, Verify: certificateCheck(n.genesis)})
	if err != nil {
		return err
	}
	n.onClose(n.blocks.Close)
	if r := n.blocks.Recovery(); r.TornFile != "" {
		n.log.Warn("cut the torn end of the block store, which was never acknowledged",
			"file", r.TornFile, "offset", r.TornOffset, "bytes", r.TornBytes)
	}
	private, err := openPrivate(l.private(), n.log)
	if err != nil {
		return err
	}
	n.onClose(private.close)
	if n.state, err = openState(l.state(), private, n.log); err != nil {
		return err
	}
	n.onClose(n.state.close)
	temp, err := exec.OpenTempFiles(l.temp(), 0)
	if err != nil {
		return err
	}
	n.state.engine.UseTempFiles(temp)
	if tip, _ := n.blocks.Tip(); n.state.store.Height() > tip {
		return fmt.Errorf("server: the state in %s has height %d, but the block store ends at block %d: blocks were lost. "+
			"Restore %s from a copy; or, to go on without the lost blocks, remove %s and it will be rebuilt from what is left",
			l.state(), n.state.store.Height(), tip, l.blocks(), l.state())
	}
	return nil
}

// startOrdering starts the embedded orderer and makes the flow.
func (n *Node) startOrdering(l layout) error {
	signer, err := loadOrderer(l, n.genesis)
	if err != nil {
		return err
	}
	return n.orderWith(signer, l.orderer(n.genesis.Params.Orderer))
}

// orderWith starts the orderer with a key; dir is where it keeps what it needs
// beside the blocks.
func (n *Node) orderWith(signer *identity.Signer, dir string) error {
	cut := cutter.FromParams(&n.genesis.Params)
	cut.MaxInFlight = maxInFlight
	var err error
	if n.orderer, err = startOrderer(loneOrdererConfig(ordererConfig{
		genesis: n.genesis, signer: signer, blocks: n.blocks, cutter: cut, dir: dir, log: n.log, schedule: n.state.chain.Schedule(),
	})); err != nil {
		return err
	}
	n.onClose(n.orderer.Close)
	n.flow, err = flow.New(flow.Options{Chain: n.state.chain, Service: n.orderer, OnBlock: n.notify, Logger: n.log})
	return err
}

// openWallet loads the keys of the users that the chain knows.
func (n *Node) openWallet(l layout) error {
	var err error
	if n.wallet, err = n.newWallet(); err != nil {
		return err
	}
	names, err := l.users()
	if err != nil {
		return err
	}
	for _, name := range names {
		u, ok := n.state.chain.User(identity.UserID{Org: DevOrg, Name: name})
		if !ok || !u.Active() || !mayConnect(u.Role) {
			if u.Role != identity.Orderer {
				n.log.Warn("a key of nobody whom the chain knows is not used", "file", l.key(name))
			}
			continue
		}
		key, err := identity.LoadKey(l.key(name))
		if err != nil {
			return err
		}
		if key.Public() != u.Key {
			return fmt.Errorf("server: %s is not the key that the chain has for %s", l.key(name), u.ID)
		}
		if err := n.wallet.Add(name, key); err != nil {
			return err
		}
	}
	n.log.Warn("this node signs for whoever connects: it is for development only", "organization", DevOrg)
	return nil
}

// holds reports whether calls can wait for the end of a transaction block: they
// can where they are executed before they are ordered.
func (n *Node) holds() bool { return n.genesis.Params.Flow == block.FlowExecuteOrderInParallel }

func (n *Node) newWallet() (*wallet.Wallet, error) {
	options := wallet.Options{
		Network: n.genesis.NetworkID(), Org: n.org(), ValidFor: n.genesis.Params.ValidityWindow,
		Height: n.state.chain.Height, Submit: n.flow.Submit, Users: n.users, Try: n.state.tryScript,
	}
	if n.holds() {
		options.Preview = n.state.chain.Preview
	}
	return wallet.New(options)
}

func (n *Node) users() ([]chain.User, error) { return n.state.chain.Users(n.state.chain.Height()) }

func mayConnect(r identity.Role) bool { return r == identity.Admin || r == identity.Client }

// Addr is where PostgreSQL clients connect.
func (n *Node) Addr() net.Addr { return n.listener.Addr() }

// Height is the number of the last block that was executed.
func (n *Node) Height() block.Height { return n.state.chain.Height() }

// Users lists who may connect, by name.
func (n *Node) Users() []string {
	users, err := n.users()
	if err != nil {
		return nil
	}
	var names []string
	for _, u := range users {
		if u.ID.Org == DevOrg && n.wallet.Has(u.ID.Name) && u.Active() {
			names = append(names, u.ID.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Serve executes what is ordered and answers clients until ctx ends, and then
// lets statements that are under way finish. It returns nil if that is why it
// ends, else the fault: the node cannot go on, and its process must not either.
func (n *Node) Serve(ctx context.Context) error {
	// The flow outlives ctx: clients wait for what it executes.
	flowCtx, stopFlow := context.WithCancel(context.Background())
	defer stopFlow()
	flowEnd, frontEnd := make(chan error, 1), make(chan error, 1)
	go func() { flowEnd <- n.flow.Run(flowCtx) }()
	go func() { frontEnd <- n.front.Serve(ctx, n.listener) }()
	background := n.watch(ctx)
	var fault error
	select {
	case <-ctx.Done():
	case err := <-flowEnd:
		flowEnd <- err // for the wait below
		fault = fmt.Errorf("server: executing blocks: %w", cause(err))
	case err := <-frontEnd:
		frontEnd <- err
		if ctx.Err() == nil {
			fault = fmt.Errorf("server: serving clients: %w", cause(err))
		}
	case err := <-background.fault:
		fault = fmt.Errorf("server: %w", err)
	}
	background.end()
	n.drain()
	<-frontEnd
	stopFlow()
	<-flowEnd
	return fault
}

// cause makes an error of an end that should not have come.
func cause(err error) error {
	if err == nil {
		return errors.New("it ended")
	}
	return err
}

// drain lets clients go.
func (n *Node) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := n.front.Shutdown(ctx); err != nil {
		n.log.Warn("statements were canceled to end the node", "error", err)
	}
}

// Close releases everything that was opened. Blocks that were ordered and not
// executed are executed at the next start.
func (n *Node) Close() error {
	var err error
	for _, f := range slices.Backward(n.closers) {
		err = errors.Join(err, f())
	}
	n.closers = nil
	return err
}
