package home

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/identity"
)

// The files of a home.
const (
	NodeFile    = "node.toml"
	OrdererFile = "orderer.toml"
	WalletFile  = "wallet.toml"
	NetworkFile = "network.toml"
	GenesisFile = "genesis"
	CertFile    = "cert.pem"
	KeyFile     = "key.pem"
	RevokedFile = "revoked"
	PasswdFile  = "passwd"
	PublicFile  = "public.toml"

	authorityDir  = "ca"
	authorityFile = "ca.pem"
	usersDir      = "users"
)

// maxScrubMinutes is a year.
const maxScrubMinutes = 366 * 24 * 60

// NodeConfig is node.toml.
type NodeConfig struct {
	Org        string `toml:"org"`
	Name       string `toml:"name"`
	Data       string `toml:"data"`
	Workers    int    `toml:"workers"`
	LogLevel   string `toml:"log_level"`
	Passphrase string `toml:"passphrase_file"`
	// ScrubMinutes is the time from the end of a scrub to the next one; 0 scrubs
	// never of its own accord.
	ScrubMinutes int `toml:"scrub_minutes"`
	Mesh         struct {
		Listen string `toml:"listen"`
	} `toml:"mesh"`
	SQL SQLConfig `toml:"sql"`
}

// SQLConfig is how PostgreSQL clients get in.
type SQLConfig struct {
	Listen         string `toml:"listen"`
	MaxConnections int    `toml:"max_connections"`
	Rules          []Rule `toml:"hba"`
}

// Rule is a line of what pg_hba.conf is in PostgreSQL: the first one that fits a
// connection decides how its user has to prove who it is.
type Rule struct {
	// Type is host (with TLS or without), hostssl or hostnossl.
	Type string `toml:"type"`
	// Database is all or a name.
	Database string `toml:"database"`
	// User is all, a name, or @passwd: whoever stands in the file passwd.
	User string `toml:"user"`
	// Address is all or a range such as 10.0.0.0/8.
	Address string `toml:"address"`
	// Method is cert, scram-sha-256 or reject.
	Method string `toml:"method"`
}

// The values of a rule.
const (
	TypeHost      = "host"
	TypeHostSSL   = "hostssl"
	TypeHostNoSSL = "hostnossl"

	All        = "all"
	PasswdUser = "@" + PasswdFile

	MethodCert   = "cert"
	MethodSCRAM  = "scram-sha-256"
	MethodReject = "reject"
)

// OrdererConfig is orderer.toml.
type OrdererConfig struct {
	Org        string `toml:"org"`
	Name       string `toml:"name"`
	Data       string `toml:"data"`
	LogLevel   string `toml:"log_level"`
	Passphrase string `toml:"passphrase_file"`
	Service    struct {
		Listen string `toml:"listen"`
	} `toml:"service"`
	Cluster struct {
		Listen string `toml:"listen"`
	} `toml:"cluster"`
}

// WalletConfig is wallet.toml.
type WalletConfig struct {
	Org        string `toml:"org"`
	User       string `toml:"user"`
	Listen     string `toml:"listen"`
	Node       string `toml:"node"`
	TrustNode  bool   `toml:"trust_node"`
	LogLevel   string `toml:"log_level"`
	Passphrase string `toml:"passphrase_file"`
}

// ReadNode reads the configuration of a node's home; paths in it become relative
// to the working directory.
func ReadNode(dir string) (*NodeConfig, error) {
	path := filepath.Join(dir, NodeFile)
	c := &NodeConfig{Data: "data", LogLevel: "info", ScrubMinutes: 60}
	if err := readTOML(path, c); err != nil {
		return nil, explainMissing(err, dir, NodeFile, "node")
	}
	err := errors.Join(checkNames(c.Org, c.Name), checkAddress(c.Mesh.Listen), checkAddress(c.SQL.Listen), checkLevel(c.LogLevel), c.SQL.validate())
	if err == nil && c.Workers < 0 {
		err = errors.New("workers must not be negative")
	}
	if err == nil && (c.ScrubMinutes < 0 || c.ScrubMinutes > maxScrubMinutes) {
		err = fmt.Errorf("scrub_minutes must be in 0..%d", maxScrubMinutes)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.Data, c.Passphrase = within(dir, c.Data), within(dir, c.Passphrase)
	return c, nil
}

// ReadOrderer reads the configuration of an orderer's home, as ReadNode does.
func ReadOrderer(dir string) (*OrdererConfig, error) {
	path := filepath.Join(dir, OrdererFile)
	c := &OrdererConfig{Data: "data", LogLevel: "info"}
	if err := readTOML(path, c); err != nil {
		return nil, explainMissing(err, dir, OrdererFile, "orderer")
	}
	if err := errors.Join(checkNames(c.Org, c.Name), checkAddress(c.Service.Listen), checkAddress(c.Cluster.Listen), checkLevel(c.LogLevel)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.Data, c.Passphrase = within(dir, c.Data), within(dir, c.Passphrase)
	return c, nil
}

// ReadWallet reads the configuration of a user's home, as ReadNode does.
func ReadWallet(dir string) (*WalletConfig, error) {
	path := filepath.Join(dir, WalletFile)
	c := &WalletConfig{LogLevel: "info"}
	if err := readTOML(path, c); err != nil {
		return nil, explainMissing(err, dir, WalletFile, "user")
	}
	if err := errors.Join(checkNames(c.Org, c.User), checkAddress(c.Listen), checkAddress(c.Node), checkLevel(c.LogLevel)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.Passphrase = within(dir, c.Passphrase)
	return c, nil
}

// explainMissing tells what a directory without configuration lacks.
func explainMissing(err error, dir, file, what string) error {
	if !isMissing(err) {
		return err
	}
	return fmt.Errorf("%s is no home of %s %s: it has no %s (tallystick init and tallystick genesis join make one)", dir, articleOf(what), what, file)
}

func articleOf(s string) string {
	if strings.ContainsAny(s[:1], "aeio") {
		return "an"
	}
	return "a"
}

func within(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func checkNames(org, name string) error {
	return identity.UserID{Org: org, Name: name}.Validate()
}

// checkAddress wants host:port with a host.
func checkAddress(a string) error {
	host, port, err := net.SplitHostPort(a)
	if err == nil && (host == "" || port == "") {
		err = errors.New("host and port are needed")
	}
	if err != nil {
		return fmt.Errorf("address %q: %w", a, err)
	}
	return nil
}

func checkLevel(s string) error {
	var l slog.Level
	if err := l.UnmarshalText([]byte(s)); err != nil {
		return fmt.Errorf("log_level %q is none of debug, info, warn, error", s)
	}
	return nil
}

// Level is the level that a log_level names.
func Level(s string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(s)) // was checked when it was read
	return l
}

func (c *SQLConfig) validate() error {
	if c.MaxConnections < 0 {
		return errors.New("sql.max_connections must not be negative")
	}
	for i := range c.Rules {
		if err := c.Rules[i].validate(); err != nil {
			return fmt.Errorf("rule %d of sql.hba: %w", i+1, err)
		}
	}
	return nil
}

func (r *Rule) validate() error {
	if !slices.Contains([]string{TypeHost, TypeHostSSL, TypeHostNoSSL}, r.Type) {
		return fmt.Errorf("type %q is none of host, hostssl, hostnossl", r.Type)
	}
	if r.Database == "" || r.User == "" || r.Address == "" {
		return errors.New("database, user and address are needed; all stands for every one")
	}
	if strings.HasPrefix(r.User, "@") && r.User != PasswdUser {
		return fmt.Errorf("user %q: the one file of names is %s", r.User, PasswdUser)
	}
	if r.Address != All {
		if _, err := netip.ParsePrefix(r.Address); err != nil {
			return fmt.Errorf("address %q is neither all nor a range such as 10.0.0.0/8", r.Address)
		}
	}
	if !slices.Contains([]string{MethodCert, MethodSCRAM, MethodReject}, r.Method) {
		return fmt.Errorf("method %q is none of cert, scram-sha-256, reject", r.Method)
	}
	if r.Method == MethodCert && r.Type != TypeHostSSL {
		return errors.New("method cert needs type hostssl")
	}
	return nil
}

// ReadPassphrase reads the first line of a file.
func ReadPassphrase(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	line = bytes.TrimRight(line, "\r")
	if len(line) == 0 {
		return nil, fmt.Errorf("%s: the first line, which is the passphrase, is empty", file)
	}
	return line, nil
}
