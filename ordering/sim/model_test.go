package sim

import "testing"

// TestOutOfOrderPaysOff: on a network with delay, sixteen batches in flight order
// many times as much as one after the other. Nothing here depends on the speed of
// the machine.
func TestOutOfOrderPaysOff(t *testing.T) {
	for _, n := range []int{4, 16} {
		run := func(inFlight int) int {
			m := Model{Nodes: n, Window: 64, MaxInFlight: inFlight, BatchTxs: 2, Delay: 5, Sync: 1, Units: 600}
			r, err := m.Run(PBFT())
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("n=%d, %d in flight: %+v", n, inFlight, r)
			return r.Txs
		}
		one, many := run(1), run(16)
		if many < 8*one {
			t.Errorf("n=%d: %d transactions out of order, %d in order", n, many, one)
		}
	}
}

// TestModelWithSilentMembers: f silent members cost nothing but their votes.
func TestModelWithSilentMembers(t *testing.T) {
	m := Model{Nodes: 7, Silent: 2, Window: 64, MaxInFlight: 16, BatchTxs: 2, Delay: 5, Units: 400}
	quiet, err := m.Run(PBFT())
	if err != nil {
		t.Fatal(err)
	}
	m.Silent = 0
	full, err := m.Run(PBFT())
	if err != nil {
		t.Fatal(err)
	}
	if quiet.Txs*10 < full.Txs*9 || quiet.Messages >= full.Messages {
		t.Errorf("with two silent members %+v, without %+v", quiet, full)
	}
}
