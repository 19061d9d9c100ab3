package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples runs the tests of every example as `tallystick test` does, and
// checks that the determinism check has nothing against what it deploys.
func TestExamples(t *testing.T) {
	dirs, err := filepath.Glob("../../examples/*/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) != 4 {
		t.Fatalf("%d examples, want 4", len(dirs))
	}
	for _, schema := range dirs {
		dir := filepath.Dir(schema)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			report, err := runTests(context.Background(), []string{schema, filepath.Join(dir, "test.sql")})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range report.Steps {
				if !s.OK {
					t.Errorf("%s:%d: %s: got %q error %q (%s), expected %q", s.File, s.Line, s.SQL, s.Rows, s.Error, s.Detail, s.Expected)
				}
			}
			if len(report.Steps) < 10 {
				t.Errorf("%d steps only", len(report.Steps))
			}
			readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil || !strings.Contains(string(readme), "tallystick test examples/"+filepath.Base(dir)+"/schema.sql") {
				t.Errorf("README.md does not say how to run the tests: %v", err)
			}
		})
	}
}
