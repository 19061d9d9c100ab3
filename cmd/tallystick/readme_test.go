package main_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/internal/e2e"
)

const readme = "../../README.md"

// readmeBlock is a script for a user in README.md, with what psql prints.
var readmeBlock = regexp.MustCompile("(?s)```sql ([a-z]+)\n(.*?)```\n```text\n(.*?)```\n")

// TestReadme replays the session of README.md. -rewrite records what psql
// printed.
func TestReadme(t *testing.T) {
	raw, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	if blocks := strings.Count(text, "```sql"); blocks != len(readmeBlock.FindAllString(text, -1)) || blocks < 4 {
		t.Fatalf("%d blocks of SQL, some without a user or without a result", blocks)
	}
	n := e2e.Start(t)
	rewrite := flag.Lookup("rewrite").Value.String() == "true" // datadriven's
	replayed := readmeBlock.ReplaceAllStringFunc(text, func(block string) string {
		m := readmeBlock.FindStringSubmatch(block)
		user, script, want := m[1], m[2], m[3]
		got := n.Psql(user, "default", script)
		if got != want && !rewrite {
			t.Errorf("as %s:\n%s\npsql prints\n%s\nand README.md says\n%s", user, script, got, want)
		}
		return fmt.Sprintf("```sql %s\n%s```\n```text\n%s```\n", user, script, got)
	})
	if rewrite && replayed != text {
		if err := os.WriteFile(readme, []byte(replayed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
