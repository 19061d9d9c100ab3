package server

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Scratch is a development network that lives in memory: blocks, state, orderer
// and keys are those of OpenDev, but nothing is on disk and no port is open. It
// is for tests of contracts.
type Scratch struct {
	node *Node
	stop context.CancelFunc
	end  chan error
}

// OpenScratch makes the network and starts executing what is ordered. Close it.
func OpenScratch() (*Scratch, error) {
	s := &Scratch{node: &Node{log: slog.New(slog.NewTextHandler(io.Discard, nil))}, end: make(chan error, 1)}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.node.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.end <- s.node.flow.Run(ctx) }()
	return s, nil
}

func (s *Scratch) open() error {
	n, fs := s.node, vfs.NewMem()
	keys := map[string]*identity.Signer{}
	var err error
	n.genesis, err = newGenesis(&Choices{}, func(user string) (*identity.Signer, error) {
		k, err := identity.GenerateSigner(rand.Reader)
		keys[user] = k
		return k, err
	})
	if err != nil {
		return err
	}
	n.blocks, err = blockstore.Open("blocks", blockstore.Options{FS: fs, Genesis: n.genesis, Verify: certificateCheck(n.genesis)})
	if err != nil {
		return err
	}
	n.onClose(n.blocks.Close)
	store, err := mvcc.Open("state", mvcc.Options{FS: fs, Logger: n.log})
	if err != nil {
		return err
	}
	n.state = newState(store, nil, n.log)
	n.onClose(n.state.close)
	if err := n.state.openChain(n.blocks, 0); err != nil {
		return err
	}
	if err := n.orderWith(keys[ordererUser], ""); err != nil {
		return err
	}
	if n.wallet, err = n.newWallet(); err != nil {
		return err
	}
	for _, u := range devUsers {
		if mayConnect(u.role) {
			if err := n.wallet.Add(u.name, keys[u.name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Users lists who may open a session, by name.
func (s *Scratch) Users() []string { return s.node.Users() }

// Session opens a session of a user, as a connection to a node would.
func (s *Scratch) Session(user string, notice func(severity string, e *pgerr.Error)) *sql.Session {
	signer := s.node.wallet.Session(user, notice)
	return s.node.state.engine.NewSession(sql.SessionOptions{
		User: user, Org: DevOrg, Database: sql.Database, ApplicationName: "tallystick test", Notice: notice,
		Parameter: func(string, string) {}, Submit: signer.Submit, Script: signer.Script,
	})
}

// Close ends the network. Its error is the fault that ended it before, if any.
func (s *Scratch) Close() error {
	s.stop()
	err := <-s.end
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, s.node.Close())
}
