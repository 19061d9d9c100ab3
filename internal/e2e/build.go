package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the program that Main built.
var binary string

// Main builds the program, runs the tests and removes it again; it is the body
// of a TestMain and does not return.
func Main(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "tallystick-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	root, err := moduleRoot()
	if err != nil {
		return 0, err
	}
	binary = filepath.Join(dir, "tallystick")
	build := exec.Command("go", "build", "-o", binary, "./cmd/tallystick")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build ./cmd/tallystick: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// moduleRoot is the directory of go.mod, upwards from the tests' directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
		dir = parent
	}
}

// Command runs the program to its end and returns what it printed, together
// with its error if the exit code is not 0.
func Command(t testing.TB, args ...string) (stdout string, err error) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Stderr = testWriter{t}
	out, err := cmd.Output()
	return string(out), err
}

// testWriter sends lines to the log of a test.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}
