package scratch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Postgres is a running PostgreSQL 15 cluster.
type Postgres struct {
	Socket string // path of its Unix socket
	dir    string
	bin    string
}

const postgresPort = "5432" // names the socket; there is no TCP

// StartPostgres makes a cluster as the regression tests want it (locale C,
// UTF-8) and starts it. The programs come from PGBIN, Debian's place for version 15, or PATH.
func StartPostgres() (*Postgres, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "conformance-pg-")
	if err != nil {
		return nil, err
	}
	p := &Postgres{Socket: filepath.Join(dir, ".s.PGSQL."+postgresPort), dir: dir, bin: bin}
	if err := p.start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

func postgresBin() (string, error) {
	for _, dir := range []string{os.Getenv("PGBIN"), "/usr/lib/postgresql/15/bin"} {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); dir != "" && err == nil {
			return dir, nil
		}
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", fmt.Errorf("PostgreSQL 15 is not installed (Debian: postgresql-15): %w", err)
	}
	return filepath.Dir(path), nil
}

func (p *Postgres) start() error {
	if os.Getuid() == 0 {
		if out, err := exec.Command("chown", "postgres", p.dir).CombinedOutput(); err != nil {
			return fmt.Errorf("chown: %w: %s", err, out)
		}
	}
	data := filepath.Join(p.dir, "data")
	if err := p.run("initdb", "-D", data, "-U", User, "-A", "trust", "-N", "--locale=C", "-E", "UTF8"); err != nil {
		return err
	}
	options := "-F -c listen_addresses= -c max_prepared_transactions=2 -k " + p.dir + " -p " + postgresPort
	return p.run("pg_ctl", "-D", data, "-w", "-o", options, "-l", filepath.Join(p.dir, "log"), "start")
}

// Stop ends the cluster and removes it.
func (p *Postgres) Stop() error {
	err := p.run("pg_ctl", "-D", filepath.Join(p.dir, "data"), "-m", "immediate", "-w", "stop")
	if rm := os.RemoveAll(p.dir); err == nil {
		err = rm
	}
	return err
}

// run executes one of PostgreSQL's programs as its user. Its output goes to a
// file: a pipe would stay open in the server.
func (p *Postgres) run(program string, args ...string) error {
	name, args := filepath.Join(p.bin, program), args
	if os.Getuid() == 0 {
		name, args = "runuser", append([]string{"-u", "postgres", "--", name}, args...)
	}
	out, err := os.CreateTemp("", "conformance-pg-out-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, out, out
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(said)))
	}
	return nil
}
