package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/internal/e2e"
)

var threeOrgs = []string{"bank", "supplier", "auditor"}

const entriesSchema = `
CREATE TABLE entries(id text PRIMARY KEY, org text NOT NULL, n bigint NOT NULL);
CREATE FUNCTION enter(id text, n bigint) RETURNS bigint LANGUAGE plpgsql AS $f$
BEGIN
  INSERT INTO entries VALUES (id, tx_org(), n);
  RETURN n;
END $f$;
`

// soakTime is how long the load runs: TALLYSTICK_NET_SOAK=5m asks for a long run.
func soakTime(t *testing.T) time.Duration {
	text := os.Getenv("TALLYSTICK_NET_SOAK")
	if text == "" {
		return 2 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// load is clients of all organizations that write entries, each under a key of its
// own, and remember which were acknowledged.
type load struct {
	n     *e2e.Network
	stop  context.CancelFunc
	ends  sync.WaitGroup
	count atomic.Int64

	mu    sync.Mutex
	acked map[string]bool
	other map[string]int // errors, by text
}

func startLoad(t *testing.T, n *e2e.Network, perOrg int) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{n: n, stop: stop, acked: map[string]bool{}, other: map[string]int{}}
	t.Cleanup(func() { stop(); l.ends.Wait() })
	for _, org := range n.Orgs {
		for client := range perOrg {
			l.ends.Go(func() { l.client(ctx, org, client) })
		}
	}
	return l
}

// client reconnects whenever its connection ends.
func (l *load) client(ctx context.Context, org string, client int) {
	for i := 0; ctx.Err() == nil; {
		c, err := pgx.Connect(ctx, l.n.URL(org+"/alice"))
		if err != nil {
			l.failed(err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for ; ctx.Err() == nil && !c.IsClosed(); i++ {
			id := fmt.Sprintf("%s-%d-%d", org, client, i)
			call, cancel := context.WithTimeout(context.Background(), 15*time.Second)
			var got int64
			err := c.QueryRow(call, "SELECT enter($1, $2)", id, int64(i)).Scan(&got)
			cancel()
			if err != nil {
				l.failed(err)
				continue
			}
			l.mu.Lock()
			l.acked[id] = true
			l.mu.Unlock()
			l.count.Add(1)
		}
		_ = c.Close(context.Background())
	}
}

func (l *load) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := err.Error()
	if i := strings.Index(text, "SQLSTATE"); i > 0 {
		text = text[i:]
	} else if len(text) > 60 {
		text = text[:60]
	}
	l.other[text]++
}

// more waits until some further transactions were acknowledged.
func (l *load) more(t *testing.T, k int64) {
	t.Helper()
	want := l.count.Load() + k
	for deadline := time.Now().Add(time.Minute); l.count.Load() < want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the network does not go on: %d acknowledged, errors %v", l.count.Load(), l.other)
		}
	}
}

// TestNetwork is a network of three organizations with an orderer each: contracts
// are deployed with the approval of all, clients of all call them through wallets,
// while orderers and nodes are killed, restarted and paused. Nothing that was
// acknowledged is lost, all nodes reach the same state, and what is on their disks
// holds.
func TestNetwork(t *testing.T) { testNetwork(t, "raft", 3) }

// TestNetworkPBFT is TestNetwork with four orderers that tolerate one that lies.
func TestNetworkPBFT(t *testing.T) { testNetwork(t, "pbft", 4) }

func testNetwork(t *testing.T, consensus string, orderers int) {
	n := e2e.StartNetwork(t, threeOrgs, consensus, orderers)
	n.Deploy(entriesSchema)
	l := startLoad(t, n, 3)
	l.more(t, 50)
	for end := time.Now().Add(soakTime(t)); time.Now().Before(end); {
		disturb(t, n, l)
	}
	l.more(t, 50)
	l.stop()
	l.ends.Wait()
	_, state := n.Settled()
	t.Logf("%d acknowledged, errors %v", len(l.acked), l.other)
	for _, org := range n.Orgs {
		checkEntries(t, n, org, l.acked)
	}
	verifyAll(t, n, state)
}

// disturb does everything once that may happen to a process.
func disturb(t *testing.T, n *e2e.Network, l *load) {
	leader := leaderOf(n)
	n.Orderers[leader].Kill()
	l.more(t, 30)
	n.Orderers[leader].Start()
	if follower := "supplier/orderer1"; len(n.Orderers) > len(n.Orgs) && leaderOf(n) != follower {
		n.Orderers[follower].Kill()
		l.more(t, 30)
		n.Orderers[follower].Start()
	}
	n.Nodes["supplier"].Kill()
	l.more(t, 30)
	n.Nodes["supplier"].Start()
	n.Nodes["auditor"].Pause()
	l.more(t, 30)
	n.Nodes["auditor"].Resume()
	n.Orderers["auditor/orderer1"].Pause()
	l.more(t, 30)
	n.Orderers["auditor/orderer1"].Resume()
	l.more(t, 30)
}

// leaderOf is the orderer that the others follow: the leader of a term, or the
// primary of a view.
func leaderOf(n *e2e.Network) (leader string) {
	n.Eventually("a leader", func() error {
		s, err := n.Status()
		for _, o := range s.Orderers {
			if n.Orderers[o.Leader] != nil {
				leader = o.Leader
				return nil
			}
		}
		return fmt.Errorf("no orderer names one: %+v, %w", s.Orderers, err)
	})
	return leader
}

// checkEntries looks for every acknowledged entry at one organization's node.
func checkEntries(t *testing.T, n *e2e.Network, org string, acked map[string]bool) {
	t.Helper()
	there := map[string]bool{}
	for _, id := range strings.Fields(n.MustPsql(org+"/alice", "SELECT id FROM entries;")) {
		there[id] = true
	}
	lost := 0
	for id := range acked {
		if !there[id] {
			lost++
			t.Errorf("%s was acknowledged, and node %s does not have it", id, org)
		}
		if lost > 5 {
			return
		}
	}
}

// verifyAll stops the network in order and checks every data directory.
func verifyAll(t *testing.T, n *e2e.Network, state string) {
	t.Helper()
	for _, org := range n.Orgs {
		n.Nodes[org].Stop()
	}
	for _, org := range n.Orgs {
		out, err := e2e.Command(t, "verify", filepath.Join(n.Dir, org, "node1", "data"), "--replay", "--json")
		var report struct {
			OK     bool
			Replay struct {
				State string `json:"state_hash"`
			}
		}
		if e := json.Unmarshal([]byte(out), &report); err != nil || e != nil || !report.OK {
			t.Errorf("verify of node %s: %v, %v\n%s", org, err, e, out)
		}
		if report.Replay.State != state {
			t.Errorf("the replay at %s ends with state hash %s, the network had %s", org, report.Replay.State, state)
		}
	}
	for name, o := range n.Orderers { // any order: each is looked at
		o.Stop()
		if out, err := e2e.Command(t, "verify", filepath.Join(n.Dir, name, "data")); err != nil {
			t.Errorf("verify of orderer %s: %v\n%s", name, err, out)
		}
	}
}

// TestNetworkCommands starts and stops a network by net up and net down, and asks
// for its status.
func TestNetworkCommands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net")
	if out, err := e2e.Command(t, "init", "--dir", dir, "--orgs", "a,b", "--orderers", "1", "--port", fmt.Sprint(e2e.FreePorts(t, 12))); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	up := e2e.NewProcess(t, "net up", "net", "up", "--dir", dir)
	up.Start()
	out, err := e2e.Command(t, "status", "--dir", dir)
	if err != nil || strings.Count(out, "node1") != 2 || strings.Count(out, "orderer1") < 1 {
		t.Errorf("status: %v\n%s", err, out)
	}
	if out, err := e2e.Command(t, "net", "up", "--dir", dir); err == nil {
		t.Errorf("the network is up twice\n%s", out)
	}
	if out, err := e2e.Command(t, "net", "down", "--dir", dir); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := up.Wait(); err != nil {
		t.Errorf("net up: %v", err)
	}
	if out, err := e2e.Command(t, "net", "down", "--dir", dir); err == nil {
		t.Errorf("a network that is not up went down\n%s", out)
	}
	if _, err := e2e.Command(t, "status", "--dir", dir); err == nil {
		t.Error("the status of a network that is down is good")
	}
}
