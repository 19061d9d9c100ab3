package home

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/pelletier/go-toml/v2"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/pki"
)

// Org is what an organization publishes about itself.
type Org struct {
	Name string `toml:"name"`
	// Authority is the certificate of its authority, PEM.
	Authority string `toml:"authority"`
	// Users are all keys that the genesis gets, those of nodes and orderers
	// included. They are in public.toml only: a running network knows better.
	Users    []User    `toml:"user,omitempty"`
	Nodes    []Node    `toml:"node,omitempty"`
	Orderers []Orderer `toml:"orderer,omitempty"`
}

// User is a name of an organization with its key.
type User struct {
	Name string `toml:"name"`
	Role string `toml:"role"`
	Key  string `toml:"key"` // hexadecimal
}

// Node tells where a node is reached, host:port.
type Node struct {
	Name string `toml:"name"`
	Mesh string `toml:"mesh"` // by nodes, orderers and tallystick status
	SQL  string `toml:"sql"`  // by PostgreSQL clients and wallets
}

// Orderer tells where an orderer is reached, host:port.
type Orderer struct {
	Name    string `toml:"name"`
	Service string `toml:"service"` // by nodes
	Cluster string `toml:"cluster"` // by other orderers
}

// Network is network.toml: who runs what where.
type Network struct {
	Name string `toml:"name"`
	ID   string `toml:"id"` // hexadecimal: the hash of the genesis
	Orgs []Org  `toml:"org"`
}

// maxFileBytes bounds what is read: far more than a network of a thousand
// organizations needs.
const maxFileBytes = 16 << 20

// ReadOrg reads a public.toml.
func ReadOrg(path string) (*Org, error) {
	o := &Org{}
	if err := readTOML(path, o); err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return o, nil
}

// ReadNetwork reads a network.toml.
func ReadNetwork(path string) (*Network, error) {
	n := &Network{}
	if err := readTOML(path, n); err != nil {
		return nil, err
	}
	for i := range n.Orgs {
		if err := n.Orgs[i].validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return n, nil
}

// Authorities are the certificates of all authorities, by organization.
func (n *Network) Authorities() (map[string]*x509.Certificate, error) {
	m := map[string]*x509.Certificate{}
	for i := range n.Orgs {
		cert, org, err := pki.ParseAuthority([]byte(n.Orgs[i].Authority))
		if err != nil {
			return nil, fmt.Errorf("organization %s: %w", n.Orgs[i].Name, err)
		}
		if _, twice := m[org]; twice || org != n.Orgs[i].Name {
			return nil, fmt.Errorf("organization %s: its authority is that of %s", n.Orgs[i].Name, org)
		}
		m[org] = cert
	}
	return m, nil
}

// Org returns what the network has of an organization; nil if it has none of that
// name.
func (n *Network) Org(name string) *Org {
	for i := range n.Orgs {
		if n.Orgs[i].Name == name {
			return &n.Orgs[i]
		}
	}
	return nil
}

// readTOML reads a file strictly: a key that v does not have is an error that
// names the line.
func readTOML(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxFileBytes {
		return fmt.Errorf("%s has %d bytes; that is no configuration", path, info.Size())
	}
	err = toml.NewDecoder(f).DisallowUnknownFields().Decode(v)
	return located(path, err)
}

// located makes an error of the library one line with its place.
func located(path string, err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		e := unknown.Errors[0]
		line, _ := e.Position()
		return fmt.Errorf("%s, line %d: unknown setting %q", path, line, strings.Join(e.Key(), "."))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, column := bad.Position()
		return fmt.Errorf("%s, line %d, column %d: %s", path, line, column, strings.TrimPrefix(bad.Error(), "toml: "))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (o *Org) validate() error {
	if err := identity.ValidateName(o.Name); err != nil {
		return fmt.Errorf("organization: %w", err)
	}
	if _, org, err := pki.ParseAuthority([]byte(o.Authority)); err != nil {
		return fmt.Errorf("organization %s: %w", o.Name, err)
	} else if org != o.Name {
		return fmt.Errorf("organization %s: its authority is that of %s", o.Name, org)
	}
	names := map[string]bool{}
	for _, n := range o.Nodes {
		if err := o.member(names, n.Name, n.Mesh, n.SQL); err != nil {
			return err
		}
	}
	for _, n := range o.Orderers {
		if err := o.member(names, n.Name, n.Service, n.Cluster); err != nil {
			return err
		}
	}
	return nil
}

func (o *Org) member(names map[string]bool, name string, addresses ...string) error {
	id := identity.UserID{Org: o.Name, Name: name}
	if err := id.Validate(); err != nil {
		return err
	}
	if names[name] {
		return fmt.Errorf("%s stands twice", id)
	}
	names[name] = true
	for _, a := range addresses {
		if err := checkAddress(a); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

// The forms of the two files.
var (
	orgForm = `# Public material of organization {{.Name}} of a Tallystick network. Nothing in it is
# secret: give it to whoever combines the network (tallystick genesis combine).

{{template "part" .}}`

	networkForm = `# The organizations of Tallystick network {{.Name}}: their certificate authorities, and
# where their nodes and orderers are reached. Every process reads it when it
# starts. Addresses may be changed; they are not trusted, and not part of the
# genesis.

# Name of the network, for people.
name = {{quote .Name}}

# Network id: the hash of the genesis.
id = {{quote .ID}}
{{range .Orgs}}
[[org]]
{{template "part" .}}{{end}}`

	orgPart = `{{define "part"}}# Name of the organization.
name = {{quote .Name}}

# Certificate of its authority, which certifies the keys of its members.
authority = """
{{.Authority}}"""
{{$p := .Prefix}}{{range .Users}}
# A key: {{.Role}}.
[[{{$p}}user]]
name = {{quote .Name}}
role = {{quote .Role}}
key = {{quote .Key}}
{{end}}{{range .Nodes}}
# A database node: for other nodes and orderers, and for PostgreSQL clients.
[[{{$p}}node]]
name = {{quote .Name}}
mesh = {{quote .Mesh}}
sql = {{quote .SQL}}
{{end}}{{range .Orderers}}
# An orderer: for nodes, and for other orderers.
[[{{$p}}orderer]]
name = {{quote .Name}}
service = {{quote .Service}}
cluster = {{quote .Cluster}}
{{end}}{{end}}`
)

// orgView is an organization with the name of its table.
type orgView struct {
	*Org
	Prefix string // "org." inside a network
}

func (o *Org) encode() []byte {
	return fill("org", orgForm, orgView{Org: o})
}

// Encode is the commented file.
func (n *Network) Encode() []byte {
	view := struct {
		Name, ID string
		Orgs     []orgView
	}{n.Name, n.ID, nil}
	for i := range n.Orgs {
		view.Orgs = append(view.Orgs, orgView{&n.Orgs[i], "org."})
	}
	return fill("network", networkForm, view)
}

// fill completes a form. Forms and views are ours: an error is a mistake here.
func fill(name, form string, view any) []byte {
	t := template.New(name).Funcs(template.FuncMap{"quote": quote})
	template.Must(t.Parse(orgPart))
	template.Must(t.Parse(form))
	var b bytes.Buffer
	if err := t.Execute(&b, view); err != nil {
		panic(fmt.Sprintf("home: form %s: %v", name, err))
	}
	return b.Bytes()
}

// quote writes a basic string of TOML.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
