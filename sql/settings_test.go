package sql_test

import (
	"strings"
	"testing"
)

// TestResetToStartup: RESET goes back to what the startup packet said, as in
// PostgreSQL, and not to the default of the server.
func TestResetToStartup(t *testing.T) {
	c := newConversation(t)
	for name, value := range map[string]string{"datestyle": "German", "search_path": "private"} {
		if err := c.session.SetStartup(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []string{"reset datestyle", "reset all", "set datestyle to default", "discard all"} {
		c.statement("set datestyle = iso")
		c.statement("set search_path = blockchain")
		c.statement(s)
		if s != "reset all" && s != "discard all" {
			c.statement("reset search_path")
		}
		c.out.Reset()
		c.statement("show datestyle")
		c.statement("show search_path")
		if got := c.out.String(); !strings.Contains(got, "German, DMY") || !strings.Contains(got, "private") {
			t.Errorf("after %s:\n%s", s, got)
		}
	}
}
