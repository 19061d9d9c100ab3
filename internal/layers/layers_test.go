package layers

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// packageMap is layers.txt.
type packageMap struct {
	place   map[string]place    // packages of the layers
	layers  []string            // names, lowest first
	aside   map[string][]string // packages beside, and what they may import
	never   []ban
	pure    []string
	ambient []string
}

// place is where a package stands: its layer and how far to the right.
type place struct{ layer, column int }

// ban forbids packages to reach others.
type ban struct {
	from string
	to   []string
}

// readMap reads the map; it must not say anything twice.
func readMap(text string) (*packageMap, error) {
	m := &packageMap{place: map[string]place{}, aside: map[string][]string{}}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := m.add(words); err != nil {
			return nil, fmt.Errorf("layers.txt:%d: %w", i+1, err)
		}
	}
	return m, nil
}

func (m *packageMap) add(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("%q says nothing", words[0])
	}
	switch subject, colon := strings.CutSuffix(words[1], ":"); {
	case words[0] == "layer" && !colon:
		return m.addLayer(words[1], words[2:])
	case words[0] == "aside" && colon:
		if m.known(subject) {
			return fmt.Errorf("%s has a place already", subject)
		}
		m.aside[subject] = words[2:]
	case words[0] == "never" && colon:
		m.never = append(m.never, ban{subject, words[2:]})
	case words[0] == "pure":
		m.pure = append(m.pure, words[1:]...)
	case words[0] == "ambient":
		m.ambient = append(m.ambient, words[1:]...)
	default:
		return fmt.Errorf("cannot read %q", strings.Join(words, " "))
	}
	return nil
}

func (m *packageMap) addLayer(name string, packages []string) error {
	layer := slices.Index(m.layers, name)
	if layer < 0 {
		layer = len(m.layers)
		m.layers = append(m.layers, name)
	}
	if layer != len(m.layers)-1 {
		return fmt.Errorf("the lines of layer %s are not together", name)
	}
	for _, p := range packages {
		if m.known(p) {
			return fmt.Errorf("%s has a place already", p)
		}
		m.place[p] = place{layer, len(m.place)} // columns count on over all lines
	}
	return nil
}

func (m *packageMap) known(p string) bool {
	_, layered := m.place[p]
	_, aside := m.aside[p]
	return layered || aside
}

// forbids says why a file of package from must not import package to; "" if it
// may.
func (m *packageMap) forbids(from, to string, test bool) string {
	if from == to {
		return "" // a test outside of its package
	}
	if !m.known(to) {
		return fmt.Sprintf("%s is not in the map", to)
	}
	if allowed, ok := m.aside[from]; ok {
		if test || anyMatches(allowed, to) {
			return ""
		}
		return fmt.Sprintf("%s stands aside and may import %v only", from, allowed)
	}
	if _, ok := m.aside[to]; ok {
		if test || from == "cmd/tallystick" {
			return ""
		}
		return fmt.Sprintf("%s stands aside: only tests may import it", to)
	}
	f, t := m.place[from], m.place[to]
	switch {
	case t.layer > f.layer:
		return fmt.Sprintf("%s is in layer %s, above %s", to, m.layers[t.layer], m.layers[f.layer])
	case t.layer == f.layer && t.column > f.column:
		return fmt.Sprintf("%s stands to the right of %s in layer %s", to, from, m.layers[f.layer])
	}
	return ""
}

// graph is who imports whom outside of tests, within the module.
func graph(pkgs []*pkg) map[string][]string {
	g := map[string][]string{}
	for _, p := range pkgs {
		for _, f := range p.files {
			for _, imp := range f.imports() {
				if to, ok := within(imp.path); ok && !f.test && !slices.Contains(g[p.path], to) {
					g[p.path] = append(g[p.path], to)
				}
			}
		}
	}
	return g
}

// reach returns a chain of imports from a package to one that the patterns
// mean, or nil.
func reach(g map[string][]string, from string, patterns []string) []string {
	type step struct {
		p    string
		back *step
	}
	seen := map[string]bool{from: true}
	queue := []*step{{p: from}}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s.p != from && anyMatches(patterns, s.p) {
			var chain []string
			for ; s != nil; s = s.back {
				chain = append(chain, s.p)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, to := range g[s.p] {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, &step{to, s})
			}
		}
	}
	return nil
}

func theMap(t *testing.T) *packageMap {
	t.Helper()
	text, err := os.ReadFile("layers.txt")
	if err != nil {
		t.Fatal(err)
	}
	m, err := readMap(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLayers: every package has a place, and imports nothing but what its place
// allows.
func TestLayers(t *testing.T) {
	m := theMap(t)
	for _, p := range load(t) {
		if !m.known(p.path) {
			t.Errorf("package %s is missing in internal/layers/layers.txt", p.path)
			continue
		}
		for _, f := range p.files {
			for _, imp := range f.imports() {
				to, ok := within(imp.path)
				if !ok {
					continue
				}
				if why := m.forbids(p.path, to, f.test); why != "" {
					t.Errorf("%s: import of %s: %s", f.at(imp.spec), to, why)
				}
			}
		}
	}
}

// TestNever: those who must not meet do not meet, over any number of imports.
func TestNever(t *testing.T) {
	m := theMap(t)
	pkgs := load(t)
	g := graph(pkgs)
	for _, p := range pkgs {
		for _, b := range m.never {
			if !matches(b.from, p.path) {
				continue
			}
			if chain := reach(g, p.path, b.to); chain != nil {
				t.Errorf("%s must never reach %s: %s", p.path, chain[len(chain)-1], strings.Join(chain, " -> "))
			}
		}
	}
}

// TestDocumentation: every package has its comment in doc.go, and in no other
// file.
func TestDocumentation(t *testing.T) {
	for _, p := range load(t) {
		documented := false
		for _, f := range p.files {
			if f.ast.Doc.Text() == "" || f.test {
				continue
			}
			if path.Base(f.path) == "doc.go" {
				documented = len(strings.Fields(f.ast.Doc.Text())) >= 10
			} else if !strings.HasPrefix(f.ast.Doc.Text(), "Code generated") {
				t.Errorf("%s: the comment of a package belongs into doc.go", f.path)
			}
		}
		if !documented {
			t.Errorf("package %s has no doc.go that tells what it is", p.path)
		}
	}
}

// TestNames: a name says what a package is for.
func TestNames(t *testing.T) {
	banned := []string{"util", "utils", "common", "types", "helper", "helpers", "misc"}
	for _, p := range load(t) {
		for _, f := range p.files {
			name := strings.TrimSuffix(f.ast.Name.Name, "_test")
			if slices.Contains(banned, name) || slices.Contains(banned, path.Base(p.path)) {
				t.Errorf("%s: a package called %s says nothing", f.path, name)
				break
			}
		}
	}
}

// TestMapRules checks the rules themselves on a small map.
func TestMapRules(t *testing.T) {
	m, err := readMap(`
# comment
layer low  a a/x
layer low  b
layer high c d
aside tool: a b
aside all: ...
never c: a/...`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		test, ok bool
	}{
		{"b", "a", false, true},     // left in its layer
		{"b", "a/x", false, true},   // on another line
		{"a", "b", false, false},    // right
		{"a", "a/x", false, false},  // below by path, right by place
		{"d", "a", false, true},     // lower
		{"a", "d", false, false},    // higher
		{"a", "d", true, false},     // also in a test
		{"a", "a", true, true},      // a test outside of its package
		{"d", "c", false, true},     // left
		{"d", "tool", false, false}, // aside
		{"d", "tool", true, true},   // aside, in a test
		{"tool", "a", false, true},  // allowed
		{"tool", "c", false, false}, // not allowed
		{"tool", "c", true, true},   // in a test
		{"all", "tool", false, true},
		{"a", "nowhere", false, false}, // not in the map
	} {
		if why := m.forbids(c.from, c.to, c.test); (why == "") != c.ok {
			t.Errorf("import of %s by %s (test %v): %q", c.to, c.from, c.test, why)
		}
	}
	g := map[string][]string{"c": {"d"}, "d": {"b", "c"}, "b": {"a/x"}}
	if chain := reach(g, "c", m.never[0].to); fmt.Sprint(chain) != "[c d b a/x]" {
		t.Errorf("chain of imports: %v", chain)
	}
	if chain := reach(g, "b", []string{"b", "c", "ab/..."}); chain != nil {
		t.Errorf("chain of imports: %v", chain)
	}
	for _, bad := range []string{
		"layer x a a", "layer x a\naside a: b", "layer x a\nlayer y b\nlayer x c", "aside a b", "nonsense a", "pure",
	} {
		if _, err := readMap(bad); err == nil {
			t.Errorf("a map that says %q is accepted", bad)
		}
	}
}
