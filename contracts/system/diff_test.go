package system

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestUnifiedDiff(t *testing.T) {
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "%d\n", i)
		}
		return b.String()
	}
	for _, c := range []struct{ old, now, want string }{
		{"", "", ""},
		{"a\nb\n", "a\nb\n", ""},
		{"", "a\nb", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"a\nb", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		{"a\nb\nc", "a\nx\nc", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
		{lines(1, 20), lines(1, 9) + "ten\n" + lines(11, 20), "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"},
		{lines(1, 20), "0\n" + lines(1, 19) + "21\n", "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -17,4 +18,4 @@\n 17\n 18\n 19\n-20\n+21\n"},
	} {
		if got := unifiedDiff(c.old, c.now); got != c.want {
			t.Errorf("%q to %q:\n%swant\n%s", c.old, c.now, got, c.want)
		}
	}
}

// TestDiffRestores: the lines of a comparison without '+' are the old text, those
// without '-' the new one, and no shorter comparison of small texts exists than one
// by brute force.
func TestDiffRestores(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		text := func() []string {
			list := make([]string, rng.IntN(9))
			for i := range list {
				list[i] = string(rune('a' + rng.IntN(3)))
			}
			return list
		}
		old, now := text(), text()
		var a, b []string
		changes := 0
		for _, e := range compareLines(old, now) {
			if e.kind != '+' {
				a = append(a, e.line)
			}
			if e.kind != '-' {
				b = append(b, e.line)
			}
			if e.kind != ' ' {
				changes++
			}
		}
		if strings.Join(a, ",") != strings.Join(old, ",") || strings.Join(b, ",") != strings.Join(now, ",") {
			t.Fatalf("%v to %v gives %v and %v", old, now, a, b)
		}
		if want := distance(old, now); changes != want {
			t.Fatalf("%v to %v: %d changes, %d suffice", old, now, changes, want)
		}
	}
}

// distance counts insertions and deletions by the definition.
func distance(a, b []string) int {
	switch {
	case len(a) == 0 || len(b) == 0:
		return len(a) + len(b)
	case a[0] == b[0]:
		return distance(a[1:], b[1:])
	}
	return 1 + min(distance(a[1:], b), distance(a, b[1:]))
}
