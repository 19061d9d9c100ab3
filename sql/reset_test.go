package sql_test

import (
	"strings"
	"testing"
)

// TestResetGoesToStartup: RESET gives a parameter the value that the client
// connected with, not the built-in default.
func TestResetGoesToStartup(t *testing.T) {
	c := newPrivateNode(t).connect()
	if err := c.session.SetStartup("DateStyle", "Postgres, DMY"); err != nil {
		t.Fatal(err)
	}
	style := func() string {
		lines := strings.Split(strings.TrimSpace(c.script("SHOW DateStyle")), "\n")
		return lines[len(lines)-1]
	}
	show := func(want string) {
		t.Helper()
		if got := style(); got != want {
			t.Errorf("DateStyle is %q, want %q", got, want)
		}
	}
	first := style()
	c.must("SET DateStyle = ISO")
	if style() == first {
		t.Fatal("SET changed nothing")
	}
	for _, reset := range []string{"RESET DateStyle", "SET DateStyle TO DEFAULT", "RESET ALL"} {
		c.must("SET DateStyle = ISO")
		c.must(reset)
		show(first)
	}
}
