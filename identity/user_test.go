package identity

import (
	"strings"
	"testing"
)

func TestRoles(t *testing.T) {
	for r := Admin; r <= Orderer; r++ {
		got, err := ParseRole(r.String())
		if err != nil || got != r || !r.Valid() {
			t.Errorf("%v: parsed as %v, %v", r, got, err)
		}
	}
	for _, s := range []string{"", "Admin", "root", "role(0)"} {
		if r, err := ParseRole(s); err == nil {
			t.Errorf("%q is taken for %v", s, r)
		}
	}
	if Role(0).Valid() || Role(5).Valid() {
		t.Error("a number that is no role is valid")
	}
}

func TestParseUserID(t *testing.T) {
	long := strings.Repeat("a", MaxNameBytes)
	for _, s := range []string{"a/b", "org1/alice-2_x", long + "/" + long} {
		u, err := ParseUserID(s)
		if err != nil || u.String() != s {
			t.Errorf("%q: %v, %v", s, u, err)
		}
	}
	for _, s := range []string{
		"", "/", "a", "a/", "/b", "a/b/c", "A/b", "a/B", "1a/b", "-a/b", "_a/b", "a/b ", "a/\x00",
		"a/é", long + "a/b", "a/" + long + "a",
	} {
		if u, err := ParseUserID(s); err == nil {
			t.Errorf("%q is taken for %v", s, u)
		}
	}
}

func TestUserIDCompare(t *testing.T) {
	sorted := []UserID{{"a", "b"}, {"a", "c"}, {"ab", "a"}, {"b", "a"}}
	for i, u := range sorted {
		for j, v := range sorted {
			if got := u.Compare(v); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("Compare(%v, %v) = %d", u, v, got)
			}
		}
	}
}
