package peer

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/ordering/orderingtest"
	"github.com/tallystick/tallystick/ordering/solo"
	"github.com/tallystick/tallystick/server/pki"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// world is the members of one organization with their keys.
type world struct {
	t         *testing.T
	dir       string
	authority *pki.Authority
	verifier  *pki.Verifier
	genesis   *block.Block

	mu      sync.Mutex
	users   map[identity.UserID]pki.Registered
	refused []error
}

func id(name string) identity.UserID { return identity.UserID{Org: "org1", Name: name} }

// key is the key of a member, a function of its name.
func key(name string) *identity.Signer {
	var seed [32]byte
	copy(seed[:], name)
	return identity.NewSigner(seed)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), users: map[identity.UserID]pki.Registered{}}
	var err error
	if w.authority, err = pki.NewAuthority("org1", key("authority"), time.Now()); err != nil {
		t.Fatal(err)
	}
	cert, _, err := pki.ParseAuthority(w.authority.PEM())
	if err != nil {
		t.Fatal(err)
	}
	w.verifier = &pki.Verifier{Authorities: map[string]*x509.Certificate{"org1": cert}, Lookup: w.lookup, Refused: func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refused = append(w.refused, err)
	}}
	org := block.Org{Name: "org1", Users: []block.User{{Name: "admin", Role: identity.Admin, Key: key("admin").Public()}}}
	for _, name := range []string{"node1", "node2"} {
		w.register(name, identity.Node)
	}
	w.register("orderer1", identity.Orderer)
	g := &block.Genesis{Network: "test", Orgs: []block.Org{org}, Params: block.DefaultParams(),
		Orderers: identity.OrdererSet{Keys: []identity.PublicKey{key("orderer1").Public()}, Quorum: 1}}
	g.Sort()
	if w.genesis, err = g.Block(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) register(name string, role identity.Role) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users[id(name)] = pki.Registered{Role: role, Key: key(name).Public(), Active: true}
}

func (w *world) lookup(u identity.UserID) (pki.Registered, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.users[u]
	return r, ok
}

// refusals is how many connections and calls were refused.
func (w *world) refusals() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.refused)
}

// pair makes key and certificate files of a member.
func (w *world) pair(name string) *pki.KeyPair {
	w.t.Helper()
	r, _ := w.lookup(id(name))
	if !r.Role.Valid() {
		r.Role = identity.Node
	}
	cert, err := w.authority.Issue(pki.Member{User: id(name), Role: r.Role, Key: key(name).Public()}, time.Now(), time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	dir, err := os.MkdirTemp(w.dir, name)
	if err != nil {
		w.t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := os.WriteFile(certFile, cert, 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := key(name).SaveKey(keyFile); err != nil {
		w.t.Fatal(err)
	}
	p, err := pki.OpenKeyPair(certFile, keyFile, nil, func(err error) { w.t.Error(err) })
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// serve runs a server of a member and tells where.
func (w *world) serve(name string, opts ServerOptions) (Remote, func()) {
	w.t.Helper()
	opts.Verifier, opts.Pair, opts.Logger = w.verifier, w.pair(name), quiet
	if opts.Status == nil {
		opts.Status = func() Status { return Status{} }
	}
	s, err := NewServer(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); err != nil {
			w.t.Error(err)
		}
	}()
	stop := sync.OnceFunc(func() {
		_ = s.Close()
		<-done
	})
	w.t.Cleanup(stop)
	r, _ := w.lookup(id(name))
	return Remote{id(name), r.Role, l.Addr().String()}, stop
}

// service makes the service of a node.
func (w *world) service(name string, change func(*ServiceOptions)) *Service {
	w.t.Helper()
	opts := ServiceOptions{
		Network: w.genesis.Genesis.NetworkID(), Verifier: w.verifier, Pair: w.pair(name), Logger: quiet,
		Block: func(h block.Height) (*block.Block, error) {
			if h == 0 {
				return w.genesis, nil
			}
			return nil, blockstore.ErrNotFound
		},
		Check: w.check, Resubmit: 100 * time.Millisecond, Stale: 50 * time.Millisecond,
	}
	change(&opts)
	s, err := NewService(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s
}

func (w *world) check(b *block.Block) error {
	cert, err := identity.DecodeCertificate(b.Certificate)
	if err != nil {
		return err
	}
	return identity.VerifyCertificate(&w.genesis.Genesis.Orderers, w.genesis.Genesis.NetworkID(), b.Hash(), cert)
}

// orderer starts orderer1 on a directory.
func (w *world) orderer(dir string, setup orderingtest.Setup) (*solo.Orderer, *blockstore.Store, func()) {
	w.t.Helper()
	store, err := blockstore.Open(dir, blockstore.Options{Genesis: w.genesis.Genesis})
	if err != nil {
		w.t.Fatal(err)
	}
	height, _ := store.Tip()
	tip, err := store.Get(height)
	if err != nil {
		w.t.Fatal(err)
	}
	o, err := solo.Start(solo.Options{
		Network: w.genesis.Genesis.NetworkID(), ConfigID: w.genesis.ConfigID, Orderers: w.genesis.Genesis.Orderers, Signer: key("orderer1"),
		Tip: tip, Persist: store.AppendBatch, Source: store.Get, Cutter: setup.Cutter, Queue: setup.Queue, Remember: w.genesis.Genesis.Params.ValidityWindow,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_ = o.Deliver(ctx, height+1, func(b *block.Block) error { o.Done(b.Number); return nil }) // ends with the test
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := o.Close(); err != nil {
			w.t.Error(err)
		}
		if err := store.Close(); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return o, store, stop
}

// blocks subscribes and returns what comes.
func blocks(t *testing.T, s ordering.Service, from block.Height) <-chan *block.Block {
	ctx, cancel := context.WithCancel(t.Context())
	out := make(chan *block.Block, 1000)
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		_ = s.Deliver(ctx, from, func(b *block.Block) error { out <- b; return nil }) // ends with the test
	}()
	return out
}

func next(t *testing.T, c <-chan *block.Block) *block.Block {
	t.Helper()
	select {
	case b := <-c:
		return b
	case <-time.After(20 * time.Second):
		t.Fatal("no block comes")
		return nil
	}
}

// usual cuts at once.
var usual = orderingtest.Setup{Queue: 1000, Cutter: cutter.Config{MaxTxs: 10, MaxBytes: 1 << 20, Timeout: 5000, Pipeline: 1}}
