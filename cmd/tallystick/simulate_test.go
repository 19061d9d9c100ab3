package main

import (
	"bytes"
	"context"
	"regexp"
	"testing"
)

// TestSimulateCommand: one state hash for all nodes.
func TestSimulateCommand(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"simulate", "--nodes", "3", "--blocks", "12", "--seed", "5"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	states := regexp.MustCompile(`(?m)^node \d  block 12  state ([0-9a-f]{64})$`).FindAllStringSubmatch(out.String(), -1)
	if len(states) != 3 || states[0][1] != states[1][1] || states[0][1] != states[2][1] {
		t.Errorf("output is\n%s", &out)
	}
	if code := run(context.Background(), []string{"simulate", "--nodes", "0", "--blocks", "0"}, &out, &errs); code == 0 {
		t.Error("a simulation without blocks succeeds")
	}
}
