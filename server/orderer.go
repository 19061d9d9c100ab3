package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/ordering/raft"
	"github.com/tallystick/tallystick/ordering/solo"
)

// embedded is an ordering service in this process that stores blocks in the
// node's own block store.
type embedded interface {
	ordering.Service
	Close() error
}

// startOrderer starts the orderer that the network was made with, after tip.
func (n *Node) startOrderer(raftDir string, signer *identity.Signer, tip *block.Block, cut cutter.Config) (embedded, error) {
	network, params := n.genesis.NetworkID(), &n.genesis.Params
	switch params.Orderer {
	case block.OrdererSolo:
		return solo.Start(solo.Options{
			Network: network, ConfigID: network, Orderers: n.genesis.Orderers, Signer: signer, Schedule: n.state.chain.Schedule(),
			Tip: tip, Persist: n.blocks.AppendBatch, Source: n.blocks.Get,
			Cutter: cut, Remember: params.ValidityWindow,
		})
	case block.OrdererRaft:
		return raft.Start(raft.Options{
			Network: network, ConfigID: network, Orderers: n.genesis.Orderers, Signer: signer, Schedule: n.state.chain.Schedule(),
			Tip: tip, Persist: n.blocks.AppendBatch, Source: n.blocks.Get,
			Dir: raftDir, Bootstrap: []raft.Peer{{Key: signer.Public(), Address: loneOrderer}},
			Address: loneOrderer, Listener: newDeafListener(), Dial: dialNobody,
			ElectionTimeout: loneElection, Cutter: cut, Remember: params.ValidityWindow, Logger: n.log,
		})
	default:
		return nil, fmt.Errorf("server: the network was made with --orderer %s, which this version cannot run", params.Orderer)
	}
}

// A development network has one orderer: others neither connect nor stand for
// election.
const (
	loneOrderer  = "orderer" // stands in the log: it must not change
	loneElection = 50 * time.Millisecond
)

func dialNobody(_ context.Context, address string) (net.Conn, error) {
	return nil, fmt.Errorf("server: a development network has no orderer %s", address)
}

// deafListener is a listener to which nobody can connect.
type deafListener struct {
	once   sync.Once
	closed chan struct{}
}

var errDeaf = errors.New("server: nobody can connect")

func newDeafListener() *deafListener { return &deafListener{closed: make(chan struct{})} }

// Accept waits for Close.
func (l *deafListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, errors.Join(net.ErrClosed, errDeaf)
}

// Close ends Accept.
func (l *deafListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the name of the orderer.
func (l *deafListener) Addr() net.Addr { return &net.UnixAddr{Name: loneOrderer, Net: "none"} }
