package home

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/pki"
)

// AdminUser is the name of the admin that every organization begins with.
const AdminUser = "admin"

// OrgPlan says what an organization begins with.
type OrgPlan struct {
	Org      string
	Nodes    int
	Orderers int
	Users    []string // clients, beside the admin
	// Host is the address on which others reach nodes and orderers; Hosts are
	// further names that node certificates get.
	Host  string
	Hosts []string
	// Port is the first port; the others follow it.
	Port int
	// Passphrase, if not empty, encrypts the keys of authority, admin and users;
	// those of nodes and orderers stay readable for processes that start alone.
	Passphrase []byte
	// Now is when certificates begin.
	Now time.Time
}

const maxProcesses = 100

func (p *OrgPlan) validate() error {
	if err := identity.ValidateName(p.Org); err != nil {
		return fmt.Errorf("organization: %w", err)
	}
	if p.Org == authorityDir || p.Org == usersDir {
		return fmt.Errorf("an organization cannot be called %s", p.Org)
	}
	if p.Nodes < 0 || p.Nodes > maxProcesses || p.Orderers < 0 || p.Orderers > maxProcesses {
		return fmt.Errorf("organization %s: %d nodes and %d orderers; each from 0 to %d", p.Org, p.Nodes, p.Orderers, maxProcesses)
	}
	seen := map[string]bool{AdminUser: true}
	for i := range p.Nodes {
		seen[nodeName(i)] = true
	}
	for i := range p.Orderers {
		seen[ordererName(i)] = true
	}
	for _, u := range p.Users {
		if err := identity.ValidateName(u); err != nil {
			return fmt.Errorf("user %q: %w", u, err)
		}
		if seen[u] {
			return fmt.Errorf("user %s stands twice, or is the name of another member", u)
		}
		seen[u] = true
	}
	if last := p.Port + p.Ports() - 1; p.Port < 1 || last > 65535 {
		return fmt.Errorf("ports %d to %d; they go from 1 to 65535", p.Port, last)
	}
	return nil
}

// Ports is how many ports the organization takes.
func (p *OrgPlan) Ports() int { return 2*p.Nodes + 2*p.Orderers + 1 + len(p.Users) }

func nodeName(i int) string    { return "node" + strconv.Itoa(i+1) }
func ordererName(i int) string { return "orderer" + strconv.Itoa(i+1) }

// orgMaker makes the files of one organization.
type orgMaker struct {
	plan      *OrgPlan
	dir       string // of the organization
	port      int    // the next one
	authority *pki.Authority
	org       *Org
}

// MakeOrg makes directory, keys, certificates and configuration of an organization
// in dir, which must not have one of that name yet, and public.toml for the
// others.
func MakeOrg(dir string, plan OrgPlan) (*Org, error) {
	if err := plan.validate(); err != nil {
		return nil, err
	}
	m := &orgMaker{plan: &plan, dir: filepath.Join(dir, plan.Org), port: plan.Port, org: &Org{Name: plan.Org}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(m.dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%s is there already: keys are never replaced. Remove it, or take another directory", m.dir)
		}
		return nil, err
	}
	for _, step := range []func() error{m.makeAuthority, m.makeNodes, m.makeOrderers, m.makeUsers} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return m.org, writeNew(filepath.Join(m.dir, PublicFile), m.org.encode(), 0o644)
}

func (m *orgMaker) makeAuthority() error {
	dir := filepath.Join(m.dir, authorityDir)
	key, err := m.newKey(dir, true)
	if err != nil {
		return err
	}
	if m.authority, err = pki.NewAuthority(m.plan.Org, key, m.plan.Now); err != nil {
		return err
	}
	m.org.Authority = string(m.authority.PEM())
	return writeNew(filepath.Join(dir, authorityFile), m.authority.PEM(), 0o644)
}

// newKey makes a home's directory and key.
func (m *orgMaker) newKey(dir string, secret bool) (*identity.Signer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := identity.GenerateSigner(rand.Reader)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, KeyFile)
	if secret && len(m.plan.Passphrase) > 0 {
		return key, key.SaveEncryptedKey(path, m.plan.Passphrase)
	}
	return key, key.SaveKey(path)
}

// member makes key, certificate and publication of a member.
func (m *orgMaker) member(dir, name string, role identity.Role) error {
	key, err := m.newKey(dir, role == identity.Admin || role == identity.Client)
	if err != nil {
		return err
	}
	member := pki.Member{User: identity.UserID{Org: m.plan.Org, Name: name}, Role: role, Key: key.Public()}
	if role == identity.Node {
		member.Hosts = append([]string{m.plan.Host, "localhost", "127.0.0.1", "::1"}, m.plan.Hosts...)
	}
	cert, err := m.authority.Issue(member, m.plan.Now, pki.MemberLife)
	if err != nil {
		return err
	}
	m.org.Users = append(m.org.Users, User{name, role.String(), key.Public().String()})
	return writeNew(filepath.Join(dir, CertFile), cert, 0o644)
}

// address takes the next port.
func (m *orgMaker) address() string {
	m.port++
	return net.JoinHostPort(m.plan.Host, strconv.Itoa(m.port-1))
}

func (m *orgMaker) makeNodes() error {
	for i := range m.plan.Nodes {
		n := Node{Name: nodeName(i), SQL: m.address(), Mesh: m.address()}
		dir := filepath.Join(m.dir, n.Name)
		if err := m.member(dir, n.Name, identity.Node); err != nil {
			return err
		}
		view := struct{ Org, Name, Mesh, SQL string }{m.plan.Org, n.Name, m.listen(n.Mesh), m.listen(n.SQL)}
		if err := writeNew(filepath.Join(dir, NodeFile), fill("node", nodeForm, view), 0o644); err != nil {
			return err
		}
		m.org.Nodes = append(m.org.Nodes, n)
	}
	return nil
}

func (m *orgMaker) makeOrderers() error {
	for i := range m.plan.Orderers {
		o := Orderer{Name: ordererName(i), Service: m.address(), Cluster: m.address()}
		dir := filepath.Join(m.dir, o.Name)
		if err := m.member(dir, o.Name, identity.Orderer); err != nil {
			return err
		}
		view := struct{ Org, Name, Service, Cluster string }{m.plan.Org, o.Name, m.listen(o.Service), m.listen(o.Cluster)}
		if err := writeNew(filepath.Join(dir, OrdererFile), fill("orderer", ordererForm, view), 0o644); err != nil {
			return err
		}
		m.org.Orderers = append(m.org.Orderers, o)
	}
	return nil
}

func (m *orgMaker) makeUsers() error {
	for i, name := range append([]string{AdminUser}, m.plan.Users...) {
		role := identity.Client
		if i == 0 {
			role = identity.Admin
		}
		dir := filepath.Join(m.dir, usersDir, name)
		if err := m.member(dir, name, role); err != nil {
			return err
		}
		node := "127.0.0.1:5432"
		if len(m.org.Nodes) > 0 {
			node = m.org.Nodes[i%len(m.org.Nodes)].SQL
		}
		_, port, err := net.SplitHostPort(m.address())
		if err != nil {
			return err
		}
		view := struct{ Org, User, Listen, Node string }{m.plan.Org, name, net.JoinHostPort("127.0.0.1", port), node}
		if err := writeNew(filepath.Join(dir, WalletFile), fill("wallet", walletForm, view), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// listen is where to listen for an address: on the address itself if it is one of
// this machine's kind, on all interfaces if it is a name that others resolve.
func (m *orgMaker) listen(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" || net.ParseIP(host) != nil {
		return address
	}
	return net.JoinHostPort("0.0.0.0", port)
}

// writeNew writes a file that must not be there yet.
func writeNew(path string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
