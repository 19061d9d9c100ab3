package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A checker of recorded histories in the manner of Elle (Kingsbury and Alvaro,
// VLDB 2020). It knows nothing of blocks and rules: it has what clients did and
// saw. Every value that is written is unique and what is read tells all values
// before, so the order of versions and with it every dependency can be read off:
//
//	wr  B read a value that A wrote          A before B
//	ww  B wrote the value after A's          A before B
//	rw  B wrote the value after one A read   A before B
//
// The history is serializable exactly if these have no cycle, and if nobody read
// what nobody wrote, or what a transaction wrote that did not commit.

// action is one access: of a list, by append (value) or by read (seen), or of a
// register, which a write replaces knowing what was there.
type action struct {
	key   string
	write bool
	value string   // written
	seen  []string // the versions that were there, oldest first, before the write
}

// event is one transaction.
type event struct {
	name    string
	actions []action
	aborted bool // it certainly did not commit
}

// checkHistory returns what is wrong with a history; "" if it is serializable.
func checkHistory(events []event) string {
	h := history{writer: map[string]int{}, events: events, edges: make([]map[int]string, len(events))}
	for i, e := range events {
		for _, a := range e.actions {
			if a.write {
				h.writer[a.key+" "+a.value] = i
			}
		}
	}
	versions, problem := h.versions()
	if problem != "" {
		return problem
	}
	for i, e := range events {
		if !e.aborted {
			h.depend(i, e, versions)
		}
	}
	return h.cycle()
}

type history struct {
	events []event
	writer map[string]int   // of key and value
	edges  []map[int]string // from -> to -> kind
}

// versions finds the order of the versions of every key: the longest that was
// seen, of which all others must be beginnings.
func (h *history) versions() (map[string][]string, string) {
	longest := map[string][]string{}
	each := func(f func(key string, seen []string) string) string {
		for _, e := range h.events {
			if e.aborted {
				continue
			}
			own := map[string]int{}
			for _, a := range e.actions {
				seen := a.seen
				if a.write {
					seen = append(slices.Clone(seen), a.value)
					own[a.key]++
				}
				if problem := f(a.key, seen); problem != "" {
					return e.name + ": " + problem
				}
			}
		}
		return ""
	}
	_ = each(func(key string, seen []string) string {
		if len(seen) > len(longest[key]) {
			longest[key] = seen
		}
		return ""
	})
	return longest, each(func(key string, seen []string) string {
		if !slices.Equal(seen, longest[key][:len(seen)]) {
			return fmt.Sprintf("saw %s as %v, others as %v", key, seen, longest[key])
		}
		for _, v := range seen {
			w, ok := h.writer[key+" "+v]
			if !ok {
				return fmt.Sprintf("saw %s in %s, which nobody wrote", v, key)
			}
			if h.events[w].aborted {
				return fmt.Sprintf("saw %s in %s, by %s, which did not commit", v, key, h.events[w].name)
			}
		}
		return ""
	})
}

// depend adds the edges that come from the accesses of one transaction.
func (h *history) depend(i int, e event, versions map[string][]string) {
	for _, a := range e.actions {
		all, n := versions[a.key], len(a.seen)
		if n > 0 {
			kind := "wr"
			if a.write {
				kind = "ww"
			}
			h.edge(h.writer[a.key+" "+a.seen[n-1]], i, kind+" "+a.key)
		}
		next := n
		if a.write {
			next = n + 1 // what comes after its own version
		}
		if next < len(all) {
			h.edge(i, h.writer[a.key+" "+all[next]], "rw "+a.key)
		}
	}
}

func (h *history) edge(from, to int, kind string) {
	if from == to {
		return
	}
	if h.edges[from] == nil {
		h.edges[from] = map[int]string{}
	}
	h.edges[from][to] = kind
}

// cycle looks for one by depth-first search and describes it.
func (h *history) cycle() string {
	const white, grey, black = 0, 1, 2
	color := make([]int, len(h.events))
	var path []int
	var visit func(i int) string
	visit = func(i int) string {
		color[i] = grey
		path = append(path, i)
		for to := range h.edges[i] {
			switch color[to] {
			case grey:
				at := slices.Index(path, to)
				var b strings.Builder
				for k := at; k < len(path); k++ {
					next := to
					if k+1 < len(path) {
						next = path[k+1]
					}
					fmt.Fprintf(&b, "%s -[%s]-> ", h.events[path[k]].name, h.edges[path[k]][next])
				}
				return "cycle: " + b.String() + h.events[to].name
			case white:
				if found := visit(to); found != "" {
					return found
				}
			}
		}
		path = path[:len(path)-1]
		color[i] = black
		return ""
	}
	for i := range h.events {
		if color[i] == white {
			if found := visit(i); found != "" {
				return found
			}
		}
	}
	return ""
}

func TestCheckHistory(t *testing.T) {
	read := func(key string, seen ...string) action { return action{key: key, seen: seen} }
	write := func(key, value string, seen ...string) action {
		return action{key: key, write: true, value: value, seen: seen}
	}
	for name, c := range map[string]struct {
		events []event
		want   string
	}{
		"serial": {[]event{
			{name: "A", actions: []action{write("x", "1")}},
			{name: "B", actions: []action{read("x", "1"), write("y", "2")}},
			{name: "C", actions: []action{read("x", "1"), read("y", "2"), write("x", "3", "1")}},
		}, ""},
		"in another order than they were written down": {[]event{
			{name: "A", actions: []action{read("x", "2")}},
			{name: "B", actions: []action{write("x", "2")}},
		}, ""},
		"write skew": {[]event{
			{name: "A", actions: []action{read("x"), read("y"), write("x", "1")}},
			{name: "B", actions: []action{read("x"), read("y"), write("y", "2")}},
			{name: "C", actions: []action{read("x", "1"), read("y", "2")}},
		}, "cycle"},
		"lost update": {[]event{
			{name: "A", actions: []action{write("x", "1")}},
			{name: "B", actions: []action{write("x", "2")}},
		}, "saw x as"},
		"read-only anomaly": {[]event{
			{name: "A", actions: []action{write("y", "1")}},
			{name: "B", actions: []action{read("x"), read("y"), write("x", "2")}},
			{name: "C", actions: []action{read("x"), read("y", "1")}},
			{name: "D", actions: []action{read("x", "2")}},
		}, "cycle"},
		"circular information": {[]event{
			{name: "A", actions: []action{write("x", "1"), read("y", "2")}},
			{name: "B", actions: []action{write("y", "2"), read("x", "1")}},
		}, "cycle"},
		"aborted read": {[]event{
			{name: "A", actions: []action{write("x", "1")}, aborted: true},
			{name: "B", actions: []action{read("x", "1")}},
		}, "did not commit"},
		"garbage": {[]event{{name: "A", actions: []action{read("x", "7")}}}, "nobody wrote"},
	} {
		if got := checkHistory(c.events); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
