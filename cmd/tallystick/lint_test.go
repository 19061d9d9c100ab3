package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestContractTools runs the scripts in testdata/tools:
//
//	file NAME           writes a file
//	lint NAME...        tallystick lint
//	test NAME...        tallystick test
func TestContractTools(t *testing.T) {
	datadriven.Walk(t, "testdata/tools", func(t *testing.T, path string) {
		dir := t.TempDir()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			args := []string{d.Cmd}
			for _, a := range d.CmdArgs {
				args = append(args, a.Key)
			}
			if d.Cmd == "file" {
				if err := os.WriteFile(filepath.Join(dir, args[1]), []byte(d.Input+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return ""
			}
			home, err := os.Getwd()
			if err == nil {
				err = os.Chdir(dir)
			}
			if err != nil {
				t.Fatal(err)
			}
			code, out, errs := command(args...)
			if err := os.Chdir(home); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%s%sexit code %d\n", out, errs, code)
		})
	})
}

// TestContractToolsJSON: the reports are JSON, also when something is wrong.
func TestContractToolsJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.sql")
	script := "CREATE TABLE t (id int PRIMARY KEY);\n" +
		"CREATE FUNCTION f() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RETURN now(); END $$;\n"
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := command("lint", file, "--json")
	var lint lintReport
	if err := json.Unmarshal([]byte(out), &lint); err != nil || code != 1 {
		t.Fatalf("exit code %d, error %v", code, err)
	}
	want := lintFinding{
		File: file, Line: 2, Column: 77, Function: "blockchain.f()", Severity: "error", Rule: "refused-function",
		Message: "function now cannot be used in a contract: it reads the clock of the node", Hint: "Use tx_time().",
	}
	if lint.OK || lint.Errors != 1 || len(lint.Findings) != 1 || lint.Findings[0] != want {
		t.Errorf("lint reports %+v", lint)
	}
	code, out, _ = command("test", file, "--json")
	var test testReport
	if err := json.Unmarshal([]byte(out), &test); err != nil || code != 1 {
		t.Fatalf("exit code %d, error %v", code, err)
	}
	if test.OK || test.Failed != 1 || len(test.Steps) != 1 || !strings.HasPrefix(test.Steps[0].Error, "0A000 contract is not deterministic: 1 finding") {
		t.Errorf("test reports %+v", test)
	}
}
