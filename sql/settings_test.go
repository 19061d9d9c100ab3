package sql_test

import (
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/pgerr"
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

// A session is one user for all its life: statements that put back who it is
// do nothing, those that would change it are refused.
func TestSettingsWhoTheSessionIs(t *testing.T) {
	n := newPrivateNode(t)
	c := n.connect()
	for _, s := range []string{
		"reset role", "set role none", "set role admin", "set role to default", "set session role none", "reset session authorization",
		"set session authorization default", "set session authorization admin", "begin", "set local role admin", "rollback", "reset all", "discard all",
	} {
		c.must(s)
		if got := c.query("show session_authorization") + " " + c.query("select current_user"); got != "admin admin" {
			t.Errorf("after %s: %s", s, got)
		}
	}
	if got := c.query("show role"); got != "none" {
		t.Errorf("role is %s", got)
	}
	for _, s := range []string{"set role other", "set session authorization other", "select set_config('role', 'other', false)"} {
		if _, err := c.exec(s); pgerr.CodeOf(err) != pgerr.InsufficientPrivilege {
			t.Errorf("%s: %v", s, err)
		}
	}
	c.must("set role admin")
	if got := c.query("show role"); got != "admin" {
		t.Errorf("role is %s", got)
	}
}
