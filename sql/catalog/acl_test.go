package catalog

import (
	"slices"
	"testing"
)

func TestACL(t *testing.T) {
	var all *ACL
	none := all.With(Public, Execute, false)
	ann := none.With("org/ann", Execute, true)
	both := ann.With("org", Execute, true).With("org", Execute, true)
	who := []Role{{}, {"org", "ann"}, {"org", "bob"}, {"other", "ann"}, {"own", "er"}}
	for _, tc := range []struct {
		name string
		acl  *ACL
		want []bool // of who
	}{
		{"default", all, []bool{true, true, true, true, true}},
		{"nobody", none, []bool{true, false, false, false, true}},
		{"a user", ann, []bool{true, true, false, false, true}},
		{"a user and the organization", both, []bool{true, true, true, false, true}},
		{"the organization is taken out", both.With("org", Execute, false), []bool{true, true, false, false, true}},
		{"who was not in", none.With("org", Execute, false), []bool{true, false, false, false, true}},
		{"everyone again", ann.With(Public, Execute, true), []bool{true, true, true, true, true}},
		{"default and a user", all.With("org/ann", Execute, true), []bool{true, true, true, true, true}},
		{"another privilege", none.With(Public, Select, true), []bool{true, false, false, false, true}},
	} {
		var got []bool
		for _, r := range who {
			got = append(got, tc.acl.Allows(r, "own/er", Execute))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	if len(none.Grants) != 0 || len(ann.Grants) != 1 || len(both.Grants) != 2 {
		t.Errorf("changes are not copies, or grants are doubled: %v %v %v", none, ann, both)
	}
	if g := none.With(Public, Select, true).With(Public, Execute, true).Grants; len(g) != 1 || g[0].Privileges != "Xr" {
		t.Errorf("two privileges of one role: %v", g)
	}
}
