package ordering

import "testing"

// TestQuorum: any two quorums share an honest member, and the honest ones alone
// are a quorum.
func TestQuorum(t *testing.T) {
	for n := 4; n <= 200; n++ {
		f, q := Faults(n), Quorum(n)
		if 3*f+1 > n || 3*(f+1)+1 <= n {
			t.Errorf("n=%d: f=%d", n, f)
		}
		if 2*q-n < f+1 {
			t.Errorf("n=%d f=%d: two quorums of %d may share faulty members only", n, f, q)
		}
		if 2*(q-1)-n >= f+1 {
			t.Errorf("n=%d f=%d: a quorum of %d is larger than it need be", n, f, q)
		}
		if n-f < q {
			t.Errorf("n=%d f=%d: %d faulty members stop a quorum of %d", n, f, f, q)
		}
		if n == 3*f+1 && q != 2*f+1 {
			t.Errorf("n=%d: quorum %d is not 2f+1", n, q)
		}
	}
	if Quorum(1) != 1 {
		t.Error("one member decides alone")
	}
}
