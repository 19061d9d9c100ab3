package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/ordering/raft"
	"github.com/tallystick/tallystick/ordering/replica"
	"github.com/tallystick/tallystick/server/home"
	"github.com/tallystick/tallystick/server/peer"
)

// Orderer is an orderer in a process of its own: it orders with the others, keeps
// all blocks, and knows no SQL.
type Orderer struct {
	log    *slog.Logger
	member *Member
	blocks *blockstore.Store
	// schedule has the configurations up to the last block at the start.
	schedule *block.Schedule
	orderer  embedded
	mesh     *peer.Server
	service  net.Listener
	closers  []func() error
}

// OpenOrderer opens the orderer of a home. After it the listeners are bound; Serve
// answers nodes.
func OpenOrderer(dir string, log *slog.Logger) (*Orderer, error) {
	o := &Orderer{log: log}
	if err := o.open(dir); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (o *Orderer) open(dir string) error {
	conf, err := home.ReadOrderer(dir)
	if err != nil {
		return err
	}
	user := identity.UserID{Org: conf.Org, Name: conf.Name}
	if o.member, err = OpenMember(dir, user, passphraseFrom(conf.Passphrase), nil, o.log); err != nil {
		return err
	}
	if err := o.member.check(identity.Orderer); err != nil {
		return err
	}
	if err := o.openBlocks(layout{conf.Data}); err != nil {
		return err
	}
	if err := o.start(conf); err != nil {
		return err
	}
	if o.mesh, err = peer.NewServer(peer.ServerOptions{
		Verifier: o.member.Verifier, Pair: o.member.Pair,
		Submit: o.orderer.Submit, Deliver: o.orderer.Deliver, Status: o.status, Logger: o.log,
	}); err != nil {
		return err
	}
	o.onClose(o.mesh.Close)
	if o.service, err = net.Listen("tcp", conf.Service.Listen); err != nil {
		return err
	}
	o.onClose(closeListener(o.service))
	return nil
}

func (o *Orderer) onClose(f func() error) { o.closers = append(o.closers, f) }

// openBlocks opens the data directory.
func (o *Orderer) openBlocks(l layout) error {
	lock, err := l.claim(o.member.Genesis)
	if err != nil {
		return err
	}
	o.onClose(lock.Close)
	o.blocks, err = blockstore.Open(l.blocks(), blockstore.Options{Genesis: o.member.Genesis, Verify: certificateCheck(o.member.Genesis)})
	if err != nil {
		return err
	}
	o.onClose(o.blocks.Close)
	o.schedule = block.NewSchedule(o.member.Genesis)
	if err := o.blocks.Iterate(1, func(b *block.Block) error {
		_, err := o.schedule.Advance(b)
		return err
	}); err != nil {
		return err
	}
	o.blocks.VerifyWith(newCertifier(o.schedule.Clone()).check)
	return nil
}

// start begins to order.
func (o *Orderer) start(conf *home.OrdererConfig) error {
	signer := o.member.Pair.Signer()
	if o.member.Genesis.Orderers.Index(signer.Public()) < 0 {
		return fmt.Errorf("%s is not among the orderers of the network", o.member.User)
	}
	c := ordererConfig{
		genesis: o.member.Genesis, signer: signer, blocks: o.blocks, cutter: cutter.FromParams(&o.member.Genesis.Params),
		dir: layout{conf.Data}.orderer(o.member.Genesis.Params.Orderer), log: o.log, schedule: o.schedule, unwatched: true,
	}
	if err := o.connectCluster(&c, conf); err != nil {
		return err
	}
	var err error
	if o.orderer, err = startOrderer(c); err != nil {
		return err
	}
	o.onClose(o.orderer.Close)
	// Blocks are done when they are stored: no node of ours tells more.
	ctx, stop := context.WithCancel(context.Background())
	o.onClose(func() error { stop(); return nil })
	height, _ := o.blocks.Tip()
	go func() {
		_ = o.orderer.Deliver(ctx, height+1, func(b *block.Block) error { // ends with the orderer
			o.orderer.Done(b.Number)
			return nil
		})
	}()
	return nil
}

// connectCluster says how the orderers reach each other: by mutual TLS, each
// checking that the other is an orderer of the network.
func (o *Orderer) connectCluster(c *ordererConfig, conf *home.OrdererConfig) error {
	byAddress, addresses := map[string]identity.UserID{}, map[identity.PublicKey]string{}
	for _, org := range o.member.Network.Orgs {
		for _, n := range org.Orderers {
			u := identity.UserID{Org: org.Name, Name: n.Name}
			r, ok := o.member.Verifier.Lookup(u)
			if !ok || r.Role != identity.Orderer {
				return fmt.Errorf("%s: %s is no orderer of the genesis", home.NetworkFile, u)
			}
			if other, twice := byAddress[n.Cluster]; twice {
				return fmt.Errorf("%s: %s and %s have one cluster address", home.NetworkFile, other, u)
			}
			byAddress[n.Cluster], addresses[r.Key] = u, n.Cluster
			c.peers = append(c.peers, raft.Peer{Key: r.Key, Address: n.Cluster})
			if u == o.member.User {
				c.address = n.Cluster
			}
		}
	}
	if c.address == "" {
		return fmt.Errorf("%s does not have %s", home.NetworkFile, o.member.User)
	}
	if o.member.Genesis.Params.Orderer == block.OrdererSolo {
		return nil
	}
	l, err := net.Listen("tcp", conf.Cluster.Listen)
	if err != nil {
		return err
	}
	c.listener = tls.NewListener(l, o.member.Verifier.Server(o.member.Pair, identity.Orderer))
	c.dial = func(ctx context.Context, address string) (net.Conn, error) {
		u, ok := byAddress[address]
		if !ok {
			return nil, fmt.Errorf("no orderer of %s has address %s", home.NetworkFile, address)
		}
		d := tls.Dialer{Config: o.member.Verifier.Client(o.member.Pair, u, identity.Orderer)}
		return d.DialContext(ctx, "tcp", address)
	}
	c.dialKey = func(ctx context.Context, key identity.PublicKey) (net.Conn, error) {
		address, ok := addresses[key]
		if !ok {
			return nil, fmt.Errorf("no orderer of %s has key %s", home.NetworkFile, key)
		}
		return c.dial(ctx, address)
	}
	c.identify = identifyOrderer(o.member.Verifier)
	return nil
}

// status is what the orderer tells about itself.
func (o *Orderer) status() peer.Status {
	st := o.orderer.Status()
	s := peer.Status{
		Org: o.member.User.Org, Name: o.member.User.Name, Role: identity.Orderer.String(), Network: o.member.Network.ID,
		Height: st.Height, Waiting: st.Waiting, Protocol: st.Protocol,
	}
	if b, err := o.blocks.Get(st.Height); err == nil {
		s.Hash = b.Hash().String()
	}
	switch r := o.orderer.(type) {
	case *raft.Orderer:
		if leader, known := r.Leader(); known {
			s.Leader = o.nameOf(leader.Key)
		}
	case *replica.Replica:
		if primary, known := r.Primary(); known {
			s.Leader = o.nameOf(primary)
		}
	}
	return s
}

func (o *Orderer) nameOf(key identity.PublicKey) string {
	for _, org := range o.member.Genesis.Orgs {
		for _, u := range org.Users {
			if u.Key == key {
				return org.Name + "/" + u.Name
			}
		}
	}
	return key.String()
}

// User is who this orderer is.
func (o *Orderer) User() identity.UserID { return o.member.User }

// Addr is where nodes connect.
func (o *Orderer) Addr() net.Addr { return o.service.Addr() }

// Serve answers nodes until ctx ends, which gives nil, or the orderer fails.
func (o *Orderer) Serve(ctx context.Context) error {
	served, ended := make(chan error, 1), make(chan error, 1)
	go func() { served <- o.mesh.Serve(o.service) }()
	watch, stop := context.WithCancel(ctx)
	defer stop()
	height, _ := o.blocks.Tip()
	go func() {
		ended <- o.orderer.Deliver(watch, height+1, func(*block.Block) error { return nil })
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return fmt.Errorf("server: serving nodes: %w", cause(err))
	case err := <-ended:
		if ctx.Err() != nil || errors.Is(err, ordering.ErrClosed) {
			return nil
		}
		return fmt.Errorf("server: ordering: %w", cause(err))
	}
}

// Close releases everything that was opened.
func (o *Orderer) Close() error {
	var err error
	for _, f := range slices.Backward(o.closers) {
		err = errors.Join(err, f())
	}
	o.closers = nil
	return err
}

// closeListener closes a listener that something else may have closed.
func closeListener(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

func leaf(c *tls.Certificate) []*x509.Certificate { return []*x509.Certificate{c.Leaf} }

// claim makes the data directory of a process of the network, or makes sure that
// it is this network's, and locks it.
func (l layout) claim(g *block.Genesis) (lock interface{ Close() error }, err error) {
	if err := l.create(); err != nil {
		return nil, err
	}
	if lock, err = l.acquire(); err != nil {
		return nil, err
	}
	there, err := loadGenesis(l)
	switch {
	case err != nil:
	case there == nil:
		err = l.writeGenesis(g.Encode())
	case there.NetworkID() != g.NetworkID():
		err = fmt.Errorf("%s has the data of network %s, and this is network %s", l.dir, there.NetworkID(), g.NetworkID())
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}
