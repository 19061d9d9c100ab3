package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/flow"
	"github.com/tallystick/tallystick/server/home"
	"github.com/tallystick/tallystick/server/peer"
	"github.com/tallystick/tallystick/server/pgwire"
	"github.com/tallystick/tallystick/server/pki"
)

// mesh is what a node of a network of several has beside one of a development
// network.
type mesh struct {
	member  *Member
	conf    *home.NodeConfig
	service *peer.Service
	forward *peer.Forwarder
	feed    *peer.Feed
	access  *access
	signing *signing
}

// OpenNode opens the node of a home and recovers. After it the listeners are
// bound; other nodes are answered at once, clients by Serve.
func OpenNode(dir string, log *slog.Logger) (*Node, error) {
	n := &Node{log: log, mesh: &mesh{}}
	if err := n.openNetwork(dir); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) openNetwork(dir string) error {
	m := n.mesh
	var err error
	if m.conf, err = home.ReadNode(dir); err != nil {
		return err
	}
	user := identity.UserID{Org: m.conf.Org, Name: m.conf.Name}
	if m.member, err = OpenMember(dir, user, passphraseFrom(m.conf.Passphrase), n.lookup, n.log); err != nil {
		return err
	}
	n.genesis = m.member.Genesis
	l := layout{m.conf.Data}
	lock, err := l.claim(n.genesis)
	if err != nil {
		return err
	}
	n.onClose(lock.Close)
	if err := n.openStores(l); err != nil {
		return err
	}
	if err := n.state.openChain(n.blocks, m.conf.Workers); err != nil {
		return err
	}
	n.onClose(func() error { n.state.chain.Close(); return nil })
	n.scrubber = newScrubber(n.state.chain, n.log)
	n.scrubber.every = time.Duration(m.conf.ScrubMinutes) * time.Minute
	if err := m.member.check(identity.Node); err != nil {
		return err
	}
	if err := n.joinMesh(); err != nil {
		return err
	}
	return n.openFront(dir)
}

// lookup is what the chain knows of a user as of the last block.
func (n *Node) lookup(id identity.UserID) (pki.Registered, bool) {
	u, ok := n.state.chain.User(id)
	return pki.Registered{Role: u.Role, Key: u.Key, Active: u.Active()}, ok
}

// joinMesh connects the node with orderers and other nodes, and makes the flow.
func (n *Node) joinMesh() error {
	m := n.mesh
	height, _ := n.blocks.Tip()
	tip, err := n.blocks.Get(height)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	n.onClose(func() error { stop(); return nil })
	m.feed = peer.NewFeed(ctx, tip, n.blocks.Get)
	if m.service, err = peer.NewService(peer.ServiceOptions{
		Network: n.genesis.NetworkID(), Protocol: n.genesis.Params.Orderer,
		Orderers: m.member.Orderers(), Nodes: m.member.Nodes(), First: m.member.preferredOrderer(),
		Verifier: m.member.Verifier, Pair: m.member.Pair,
		Block: n.blocks.Get, Check: newCertifier(n.state.chain.Schedule()).check, Taken: m.feed.Add, Logger: n.log,
	}); err != nil {
		return err
	}
	n.onClose(m.service.Close)
	options := flow.Options{Chain: n.state.chain, Service: m.service, Append: n.blocks, OnBlock: n.notify, Logger: n.log}
	if n.holds() {
		if m.forward, err = peer.NewForwarder(m.member.Nodes(), m.member.Verifier, m.member.Pair, n.log); err != nil {
			return err
		}
		n.onClose(m.forward.Close)
		options.Forward = m.forward.Forward
	}
	if n.flow, err = flow.New(options); err != nil {
		return err
	}
	n.checkpoints = newCheckpointer(n.state.chain, n.submitCheckpoint, m.member.User, m.member.Pair.Signer, n.log)
	return n.serveMesh()
}

// serveMesh answers orderers and other nodes.
func (n *Node) serveMesh() error {
	m := n.mesh
	options := peer.ServerOptions{Verifier: m.member.Verifier, Pair: m.member.Pair, Deliver: m.feed.Deliver, Status: n.status, Logger: n.log}
	if n.holds() {
		options.Forward = n.speculate
	}
	s, err := peer.NewServer(options)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", m.conf.Mesh.Listen)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	n.onClose(func() error {
		err := s.Close()
		<-done
		return err
	})
	go func() {
		defer close(done)
		if err := s.Serve(l); err != nil {
			n.log.Error("other nodes are not answered any more", "error", err)
		}
	}()
	return nil
}

// speculate executes what another node has accepted ahead of its block.
func (n *Node) speculate(tx *block.Tx) {
	if n.state.chain.Authenticate(tx) == nil && n.state.chain.CheckSnapshot(tx) == nil {
		n.state.chain.Speculate(tx)
	}
}

// status is what the node tells about itself.
func (n *Node) status() peer.Status {
	height, hash, state := n.state.chain.Tip()
	return peer.Status{
		Org: n.mesh.member.User.Org, Name: n.mesh.member.User.Name, Role: identity.Node.String(), Network: n.genesis.NetworkID().String(),
		Height: height, Hash: hash.String(), State: state.String(), Waiting: n.flow.Waiting(), Protocol: n.genesis.Params.Orderer, Version: buildVersion(),
	}
}

func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// openFront lets PostgreSQL clients in.
func (n *Node) openFront(dir string) error {
	m := n.mesh
	var err error
	if m.access, err = newAccess(dir, m.conf, m.member); err != nil {
		return err
	}
	m.signing = newSigning()
	if n.wallet, err = n.newWallet(); err != nil {
		return err
	}
	if n.front, err = pgwire.New(pgwire.Config{
		Authenticate: m.access.authenticate, SCRAM: m.access.verifier, NewSession: n.networkSession,
		TLS: m.access.tls(), MaxConnections: m.conf.SQL.MaxConnections, Logger: n.log,
	}); err != nil {
		return err
	}
	if n.listener, err = net.Listen("tcp", m.conf.SQL.Listen); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	n.onClose(closeListener(n.listener))
	return nil
}

// org is the organization whose users come in here.
func (n *Node) org() string {
	if n.mesh != nil {
		return n.mesh.member.User.Org
	}
	return DevOrg
}

// Member is who this node is in a network; the zero value in a development one.
func (n *Node) Member() identity.UserID {
	if n.mesh == nil {
		return identity.UserID{}
	}
	return n.mesh.member.User
}
