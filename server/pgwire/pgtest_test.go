package pgwire

import (
	"flag"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// pgAddr makes the scripts run against a PostgreSQL server instead: with
// -rewrite, what it answers becomes the expectation. It needs trust
// authentication, a user alice and a database tallystick.
var pgAddr = flag.String("pg", "", "host:port of a PostgreSQL 15 to run the scripts of testdata/pgtest against")

// TestScripts runs wire sessions. The expectations were recorded from
// PostgreSQL 15, except in testdata/own, where this server says something of
// its own.
//
//	connect [as=name] [user=u] [database=d] [minor=n]
//	name value       (run-time parameters)
//
//	exchange [with=name] [ready=n | until=closed]
//	Message fields...
//
// An exchange sends its messages in one write and receives until every Query,
// Sync and FunctionCall has had its ReadyForQuery (or n have come), or the
// connection ended.
func TestScripts(t *testing.T) {
	run := func(t *testing.T, dir, addr string) {
		datadriven.Walk(t, dir, func(t *testing.T, path string) {
			if addr == "" {
				_, own := start(t, nil)
				runScript(t, path, own)
				return
			}
			runScript(t, path, addr)
		})
	}
	t.Run("pgtest", func(t *testing.T) { run(t, "testdata/pgtest", *pgAddr) })
	t.Run("own", func(t *testing.T) { run(t, "testdata/own", "") })
}

func runScript(t *testing.T, path, addr string) {
	clients := map[string]*client{}
	defer func() {
		for _, c := range clients {
			_ = c.nc.Close()
		}
	}()
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		name := "main"
		switch d.Cmd {
		case "connect":
			d.MaybeScanArgs(t, "as", &name)
			c, out := scriptConnect(t, d, addr)
			clients[name] = c
			return out
		case "exchange":
			d.MaybeScanArgs(t, "with", &name)
			if clients[name] == nil {
				clients[name] = connect(t, addr)
			}
			return scriptExchange(t, d, clients[name])
		}
		d.Fatalf(t, "unknown directive %s", d.Cmd)
		return ""
	})
}

func scriptConnect(t *testing.T, d *datadriven.TestData, addr string) (*client, string) {
	params := defaults()
	minor := 0
	var user, database string
	d.MaybeScanArgs(t, "minor", &minor)
	if d.MaybeScanArgs(t, "user", &user); user != "" {
		params["user"] = user
	}
	if d.MaybeScanArgs(t, "database", &database); database != "" {
		params["database"] = database
	}
	for line := range strings.Lines(d.Input) {
		w, err := words(line)
		if err != nil || len(w) != 2 {
			d.Fatalf(t, "not a name and a value: %s", line)
		}
		params[w[0]] = w[1]
	}
	c, err := dial(addr, uint32(3<<16+minor), params)
	if err == nil {
		err = c.login()
	}
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return c, strings.Join(c.seen, "\n") + "\n"
}

func scriptExchange(t *testing.T, d *datadriven.TestData, c *client) string {
	var out []byte
	expect := 0
	for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		raw, ends, err := parseMessage(line)
		if err != nil {
			d.Fatalf(t, "%s: %v", line, err)
		}
		out = append(out, raw...)
		if ends {
			expect++
		}
	}
	d.MaybeScanArgs(t, "ready", &expect)
	var until string
	if d.MaybeScanArgs(t, "until", &until); until == "closed" {
		expect++ // which never comes
	}
	if _, err := c.nc.Write(out); err != nil {
		return "closed\n"
	}
	if expect == 0 {
		return "\n"
	}
	return strings.Join(c.collect(expect), "\n") + "\n"
}
