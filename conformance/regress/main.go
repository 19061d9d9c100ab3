package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tallystick/tallystick/conformance/scratch"
)

var (
	dir      = flag.String("dir", "conformance", "the conformance `directory`")
	out      = flag.String("out", "", "where the results go (default: RESULTS.md of the directory)")
	only     = flag.String("files", "", "run these scripts only (separated by commas) and write no results unless -out says where")
	binary   = flag.String("tallystick", "", "the program to test; built from this module if empty")
	commit   = flag.String("commit", "", "the commit that the program of -tallystick is of, for the results; that of the working tree if it is built")
	progress = flag.Bool("v", false, "tell what is run")
)

const (
	// statementTimeout ends a statement of the node, answerTimeout the wait for
	// a server that does not even say that.
	statementTimeout = 10 * time.Second
	answerTimeout    = 20 * time.Second
)

func main() {
	flag.Parse()
	if err := mainError(); err != nil {
		fmt.Fprintln(os.Stderr, "regress:", err)
		os.Exit(1)
	}
}

func mainError() (err error) {
	build, err := filepath.Abs(filepath.Join(*dir, "build"))
	if err != nil {
		return err
	}
	if err := fetch(build); err != nil {
		return err
	}
	list, err := readDeclarations(filepath.Join(*dir, "declared.txt"))
	if err != nil {
		return err
	}
	pg, err := scratch.StartPostgres()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.Stop()) }()
	node, err := scratch.StartNode(*binary, filepath.Join(build, "node.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Stop()) }()
	files, err := os.MkdirTemp("", "conformance-files-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(files)
	r := &runner{
		regress: filepath.Join(build, "postgresql-15/src/test/regress"), declared: list,
		effects: newEffects(), commands: map[string]int{},
	}
	if r.pg, err = postgresSide(pg, files); err != nil {
		return err
	}
	if r.node, err = nodeSide(node, files); err != nil {
		return err
	}
	r.restart = func() (bool, error) {
		time.Sleep(time.Second / 2) // a process that dies needs a moment
		if node.Running() {
			return false, nil
		}
		err := node.Restart()
		r.node.address = node.Addr
		return true, err
	}
	return compareAll(r, build)
}

// nodeCommit names the commit of the program that was tested.
func nodeCommit() (string, error) {
	if *commit != "" {
		return *commit, nil
	}
	if *binary != "" {
		return "unknown, of the program " + filepath.Base(*binary), nil
	}
	out, err := exec.Command("git", "-C", *dir, "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "", fmt.Errorf("git describe: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func fetch(build string) error {
	cmd := exec.Command(filepath.Join(*dir, "regress", "fetch.sh"), build)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

func postgresSide(pg *scratch.Postgres, files string) (*side, error) {
	s := &side{network: "unix", address: pg.Socket, database: "postgres", options: "-c intervalstyle=postgres_verbose", timeout: answerTimeout}
	var err error
	if s.dir, err = makeDir(files, "postgres"); err != nil {
		return nil, err
	}
	if err := s.open("setup", scratch.User); err != nil {
		return nil, err
	}
	for _, text := range []string{"create database regression template template0", "create role regression_user"} {
		if a, _ := s.run(text, func() string { return "" }); a.Err != nil {
			return nil, errors.New(a.Err.Text)
		}
	}
	s.database = "regression"
	return s, nil
}

func nodeSide(node *scratch.Node, files string) (*side, error) {
	s := &side{
		network: "tcp", address: node.Addr, database: "tallystick", timeout: answerTimeout, node: true,
		options: fmt.Sprintf("-c intervalstyle=postgres_verbose -c search_path=private -c statement_timeout=%d", statementTimeout.Milliseconds()),
	}
	var err error
	s.dir, err = makeDir(files, "node")
	return s, err
}

// compareAll runs the scripts and writes what came out.
func compareAll(r *runner, build string) error {
	var wanted []string
	if *only != "" {
		wanted = strings.Split(*only, ",")
	}
	scripts, err := schedule(r.regress, wanted)
	if err != nil {
		return err
	}
	var all []*outcome
	for _, script := range scripts {
		begun := time.Now()
		outcomes, err := r.script(script)
		if err != nil {
			return fmt.Errorf("%s: %w", script, err)
		}
		if *progress {
			_, t := tallies(outcomes)
			fmt.Fprintf(os.Stderr, "%-20s %5d equal %4d declared %4d differ %4d errors %4d excluded %8s\n", script,
				t.n[equal], t.n[declared], t.n[differs], t.n[refused], t.n[excluded], time.Since(begun).Round(time.Millisecond))
		}
		if !slices.Contains(prerequisites, script) || slices.Contains(wanted, script) {
			all = append(all, outcomes...)
		}
	}
	about := &run{version: r.pg.conn.Parameter("server_version"), commands: r.commands, crashes: r.crashes}
	if about.commit, err = nodeCommit(); err != nil {
		return err
	}
	if err := write(filepath.Join(build, "regress.txt"), func(w io.Writer) error { return writeDetails(w, all) }); err != nil {
		return err
	}
	if err := write(filepath.Join(build, "clusters.txt"), func(w io.Writer) error { return writeClusters(w, all) }); err != nil {
		return err
	}
	target := *out
	if target == "" && *only != "" {
		return writeReport(os.Stdout, all, about)
	}
	if target == "" {
		target = filepath.Join(*dir, "RESULTS.md")
	}
	return write(target, func(w io.Writer) error { return writeReport(w, all, about) })
}

func write(path string, content func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(content(f), f.Close())
}
