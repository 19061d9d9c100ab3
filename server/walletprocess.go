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

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/server/home"
	"github.com/tallystick/tallystick/server/pki"
	"github.com/tallystick/tallystick/server/wallet"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// WalletOptions say how a wallet runs.
type WalletOptions struct {
	Home string
	// Listen and Node replace what wallet.toml says, if not empty.
	Listen, Node string
	// TrustNode signs arguments without checking them.
	TrustNode  bool
	Passphrase func() ([]byte, error) // asked if the key is encrypted and no file has it
	Logger     *slog.Logger
}

// Wallet is a signing endpoint in a process of its own, on its user's machine.
type Wallet struct {
	proxy    *wallet.Proxy
	user     identity.UserID
	listener net.Listener
	closers  []func() error
}

// OpenWallet opens the wallet of a user's home. After it the listener is bound.
func OpenWallet(opts WalletOptions) (*Wallet, error) {
	w := &Wallet{}
	if err := w.open(&opts); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Wallet) open(opts *WalletOptions) error {
	conf, err := home.ReadWallet(opts.Home)
	if err != nil {
		return err
	}
	if opts.Listen != "" {
		conf.Listen = opts.Listen
	}
	if opts.Node != "" {
		conf.Node = opts.Node
	}
	passphrase := opts.Passphrase
	if conf.Passphrase != "" {
		passphrase = passphraseFrom(conf.Passphrase)
	}
	w.user = identity.UserID{Org: conf.Org, Name: conf.User}
	m, err := OpenMember(opts.Home, w.user, passphrase, nil, opts.Logger)
	if err != nil {
		return err
	}
	tlsConfig, err := nodeTLS(m, conf.Node)
	if err != nil {
		return err
	}
	engine, err := w.openEngine(opts.Logger)
	if err != nil {
		return err
	}
	w.proxy = wallet.NewProxy(wallet.ProxyOptions{
		Network: m.Genesis.NetworkID(), User: w.user, Node: conf.Node, TLS: tlsConfig, TrustNode: opts.TrustNode || conf.TrustNode, Logger: opts.Logger,
		Sign: func(tx *block.Tx) error { return tx.Sign(m.Pair.Signer()) },
		Session: func(settings [][2]string) *sql.Session {
			return newConstants(engine, w.user, settings)
		},
	})
	if w.listener, err = net.Listen("tcp", conf.Listen); err != nil {
		return err
	}
	w.closers = append(w.closers, closeListener(w.listener))
	return nil
}

// nodeTLS is the configuration for connections to the node: it must have a
// certificate of the user's own organization, as a node, for the name or address
// that the wallet connects to.
func nodeTLS(m *Member, node string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(node)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(m.Verifier.Authorities[m.User.Org])
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: host,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return m.Pair.Current() },
		VerifyConnection: func(s tls.ConnectionState) error {
			if u := s.PeerCertificates[0].Subject.OrganizationalUnit; !slices.Equal(u, []string{identity.Node.String()}) {
				return fmt.Errorf("%w: it is not that of a node", pki.ErrRefused)
			}
			return nil
		},
	}, nil
}

// openEngine makes an empty database in memory: what evaluates constants.
func (w *Wallet) openEngine(log *slog.Logger) (*sql.Engine, error) {
	store, err := mvcc.Open("state", mvcc.Options{FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	s := newState(store, nil, log)
	w.closers = append(w.closers, s.close)
	return s.engine, nil
}

// newConstants makes a session that evaluates constants for a user.
func newConstants(engine *sql.Engine, user identity.UserID, settings [][2]string) *sql.Session {
	s := engine.NewSession(sql.SessionOptions{
		User: user.Name, Org: user.Org, Database: sql.Database,
		Notice: func(string, *pgerr.Error) {}, Parameter: func(string, string) {},
	})
	for _, v := range settings {
		_ = s.SetStartup(v[0], v[1]) // a value that the node has taken; if not, values differ and nothing is signed
	}
	return s
}

// Addr is where PostgreSQL clients connect.
func (w *Wallet) Addr() net.Addr { return w.listener.Addr() }

// User is who signs.
func (w *Wallet) User() identity.UserID { return w.user }

// Serve serves clients until ctx ends, which gives nil.
func (w *Wallet) Serve(ctx context.Context) error { return w.proxy.Serve(ctx, w.listener) }

// Close releases everything that was opened.
func (w *Wallet) Close() error {
	var err error
	for _, f := range slices.Backward(w.closers) {
		err = errors.Join(err, f())
	}
	w.closers = nil
	return err
}
