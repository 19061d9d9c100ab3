package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/ordering/pbft"
	"github.com/tallystick/tallystick/ordering/raft"
	"github.com/tallystick/tallystick/ordering/solo"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// embedded is an ordering service in this process that stores blocks in the
// node's own block store.
type embedded interface {
	ordering.Service
	Close() error
}

// ordererConfig is what an orderer of any protocol is opened with.
type ordererConfig struct {
	genesis *block.Genesis
	signer  *identity.Signer
	blocks  *blockstore.Store
	cutter  cutter.Config
	log     *slog.Logger
	// schedule has the configurations of the chain up to the store's last block.
	schedule *block.Schedule
	// The rest is for protocols of several orderers: the directory of their log or
	// votes, all of them with this one, and how they reach each other.
	dir      string
	address  string
	peers    []raft.Peer
	listener net.Listener
	dial     func(ctx context.Context, address string) (net.Conn, error)
	// dialKey and identify are for protocols that know each other by their keys;
	// nil for an orderer that is alone.
	dialKey   func(ctx context.Context, orderer identity.PublicKey) (net.Conn, error)
	identify  func(net.Conn) (identity.PublicKey, error)
	election  time.Duration // 0 is the protocol's default
	unwatched bool          // no node tells how far it has processed blocks
}

// startOrderer starts an orderer of the protocol that the network was made with,
// after the last block of the store.
func startOrderer(c ordererConfig) (embedded, error) {
	height, _ := c.blocks.Tip()
	tip, err := c.blocks.Get(height)
	if err != nil {
		return nil, err
	}
	network, params := c.genesis.NetworkID(), &c.genesis.Params
	switch params.Orderer {
	case block.OrdererSolo:
		return solo.Start(solo.Options{
			Network: network, ConfigID: network, Orderers: c.genesis.Orderers, Signer: c.signer, Schedule: c.schedule,
			Tip: tip, Persist: c.blocks.AppendBatch, Source: c.blocks.Get,
			Cutter: c.cutter, Remember: params.ValidityWindow,
		})
	case block.OrdererRaft:
		return raft.Start(raft.Options{
			Network: network, ConfigID: network, Orderers: c.genesis.Orderers, Signer: c.signer, Schedule: c.schedule,
			Tip: tip, Persist: c.blocks.AppendBatch, Source: c.blocks.Get,
			Dir: c.dir, Bootstrap: c.peers, Address: c.address, Listener: c.listener, Dial: c.dial,
			ElectionTimeout: c.election, IgnoreDone: c.unwatched, Cutter: c.cutter, Remember: params.ValidityWindow, Logger: c.log,
		})
	case block.OrdererPBFT:
		return startReplica(&c, pbft.Protocol, tip)
	default:
		return nil, pgerr.NotBuilt("orderers of protocol %s are not available yet", params.Orderer).
			WithDetail("The network was made with it, and this version cannot run it.")
	}
}

// loneOrdererConfig is that of an orderer inside a development network's node.
func loneOrdererConfig(c ordererConfig) ordererConfig {
	c.address, c.peers = loneOrderer, []raft.Peer{{Key: c.signer.Public(), Address: loneOrderer}}
	c.listener, c.dial, c.election = newDeafListener(), dialNobody, loneElection
	return c
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
