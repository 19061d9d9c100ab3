package e2e

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Psql runs a script and returns what psql printed, errors in their place.
// verbosity is psql's variable of that name: default, verbose, terse or
// sqlstate.
func (n *Node) Psql(user, verbosity, script string) string {
	n.t.Helper()
	out, _ := n.run(user, script, "psql", "-X", "-v", "VERBOSITY="+verbosity, "-v", "ON_ERROR_STOP=0")
	return out
}

// MustPsql runs a script that must have no error.
func (n *Node) MustPsql(user, script string) string {
	n.t.Helper()
	out, err := n.run(user, script, "psql", "-X", "-q", "-A", "-t", "-v", "VERBOSITY=default", "-v", "ON_ERROR_STOP=1")
	if err != nil {
		n.t.Fatalf("psql: %v\n%s", err, out)
	}
	return strings.TrimSpace(out)
}

// Pgbench runs pgbench and returns its report.
func (n *Node) Pgbench(user string, args ...string) (string, error) {
	n.t.Helper()
	return n.run(user, "", "pgbench", args...)
}

// Transcripts runs the files of a directory, each on a node of its own:
//
//	psql [user=name] [verbosity=v]
//	script
//	----
//	what psql prints
//
//	restart
//	----
//
// A restart ends the node by SIGTERM, a crash by SIGKILL; both start it again.
// -rewrite records what was printed.
func Transcripts(t *testing.T, dir string, flags ...string) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		n := Start(t, flags...)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "psql":
				user, verbosity := Admin, "default"
				d.MaybeScanArgs(t, "user", &user)
				d.MaybeScanArgs(t, "verbosity", &verbosity)
				return strings.TrimRight(n.Psql(user, verbosity, d.Input), "\n") + "\n"
			case "restart":
				n.Stop()
				n.Start()
			case "crash":
				n.Kill()
				n.Start()
			default:
				d.Fatalf(t, "unknown directive %s", d.Cmd)
			}
			return ""
		})
	})
}
