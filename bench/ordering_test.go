package bench_test

import (
	"testing"
	"time"

	"github.com/tallystick/tallystick/bench"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// An experiment orders transactions, in every variant.
func TestOrdering(t *testing.T) {
	for name, o := range map[string]bench.OrderingOptions{
		"disk":       {Disk: true},
		"signatures": {Signatures: true},
		"failed":     {Failed: 1},
		"one":        {Orderers: 1, Scheme: bench.SchemeNone},
	} {
		t.Run(name, func(t *testing.T) {
			o.Batch, o.Clients, o.Burst, o.Transactions, o.Duration = 20, 4, 40, 640, time.Hour
			r, err := bench.Ordering(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Done != 640 || r.Blocks <= 0 {
				t.Errorf("report %+v", r)
			}
		})
	}
	_, err := bench.Ordering(t.Context(), bench.OrderingOptions{Protocol: "zyzzyva"})
	if pgerr.CodeOf(err) != pgerr.FeatureNotSupported {
		t.Errorf("a protocol that is not built: %v", err)
	}
}
