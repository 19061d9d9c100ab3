package layers

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"
)

// impure are the imports that no pure package has, with all below them.
var impure = []string{
	"time/...", "net/...", "sync/...", "os/...", "syscall/...", "runtime/...", "context/...",
	"math/rand/...", "crypto/rand/...", "unsafe/...", "log/...", "io/ioutil/...",
}

// impurities lists what makes a file of a pure package impure. info knows the
// types of expressions as far as the package itself declares them.
func impurities(f *source, info *types.Info) []string {
	var found []string
	report := func(n ast.Node, what string) { found = append(found, f.at(n)+": "+what) }
	for _, imp := range f.imports() {
		if anyMatches(impure, imp.path) {
			report(imp.spec, "import of "+imp.path)
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "go statement")
		case *ast.SelectStmt:
			report(n, "select statement")
		case *ast.SendStmt:
			report(n, "send on a channel")
		case *ast.ChanType:
			report(n, "channel type")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				report(n, "receive from a channel")
			}
		case *ast.RangeStmt:
			if isMap(info.TypeOf(n.X)) && !f.explained(n) {
				report(n, `range over a map without "// any order: ..."`)
			}
		}
		return true
	})
	return found
}

func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// explained reports whether the line of a statement or the one above it has a
// comment that begins with "any order:" and goes on.
func (f *source) explained(n ast.Node) bool {
	line := f.fset.Position(n.Pos()).Line
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			why, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(c.Text, "//")), "any order:")
			at := f.fset.Position(c.Pos()).Line
			if ok && strings.TrimSpace(why) != "" && (at == line || at == line-1) {
				return true
			}
		}
	}
	return false
}

// nothing imports empty packages: enough to find the maps that a package itself
// declares.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	return nil, fmt.Errorf("%s is not looked at", path)
}

// check finds the types of a package as far as they do not come from others.
func check(path string, files []*source) *types.Info {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	cfg := types.Config{Importer: nothing{}, Error: func(error) {}}
	var asts []*ast.File
	for _, f := range files {
		asts = append(asts, f.ast)
	}
	if len(asts) > 0 {
		// The error is that of the imports, and expected.
		_, _ = cfg.Check(path, files[0].fset, asts, info)
	}
	return info
}

func (p *pkg) sources() []*source {
	return slices.DeleteFunc(slices.Clone(p.files), func(f *source) bool { return f.test })
}

// TestPure: pure machines have no access to the world, and no order but their
// own.
func TestPure(t *testing.T) {
	m := theMap(t)
	for _, p := range load(t) {
		if !anyMatches(m.pure, p.path) {
			continue
		}
		files := p.sources()
		info := check(p.path, files)
		for _, f := range files {
			for _, what := range impurities(f, info) {
				t.Error(what)
			}
		}
	}
}

// TestPureFinds: the check finds what it is for.
func TestPureFinds(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"nothing", `import "sort"
			func f(s []int) { for range s { sort.Ints(s) } }`, 0},
		{"imports", `import ("time"; "net/http"; r "math/rand/v2"; "sync/atomic"; "maps")`, 4},
		{"goroutine", `func f() { go f() }`, 1},
		{"channels", `func f(c chan int) { c <- <-c }`, 3},
		{"select", `func f() { select {} }`, 1},
		{"map", `type set map[int]bool
			func f(m set) { for range m { } }`, 1},
		{"map of a field", `type s struct { m map[string]*s }
			func (x *s) f() { for k, v := range x.m { _ = k; v.f() } }`, 1},
		{"explained", "func f(m map[int]int) (n int) {\n// any order: a sum\nfor _, v := range m { n += v }\nreturn }", 0},
		{"not explained", "func f(m map[int]int) (n int) {\n// any order:\nfor _, v := range m { n += v }\nreturn }", 1},
		{"explained elsewhere", "func f(m map[int]int) (n int) {\n// any order: a sum\n\nfor _, v := range m { n += v }\nreturn }", 1},
	} {
		f := parseSource(t, "p/x.go", "package p\n"+c.text)
		if got := impurities(f, check("p", []*source{f})); len(got) != c.want {
			t.Errorf("%s: %q, want %d findings", c.name, got, c.want)
		}
	}
}

// machine lists, for each package, the names in it that tell about the machine,
// the moment or chance.
var machine = map[string][]string{
	"time":    {"Now", "Since", "Until", "Local"},
	"os":      {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Hostname", "Getpid"},
	"runtime": {"NumCPU", "GOMAXPROCS", "NumGoroutine"},
	"syscall": {"Getenv", "Environ"},
}

// chance are packages whose import is enough.
var chance = []string{"math/rand", "math/rand/v2", "crypto/rand"}

// ambientUses returns what a file uses of machine and chance, by name, each with
// a place.
func ambientUses(f *source) map[string]string {
	uses := map[string]string{}
	local := map[string][]string{} // name in the file -> banned names
	called := map[string]string{}  // name in the file -> import path
	for _, imp := range f.imports() {
		if slices.Contains(chance, imp.path) {
			uses[imp.path] = f.at(imp.spec)
		}
		if names, ok := machine[imp.path]; ok {
			if imp.name == "." {
				uses["import . "+imp.path] = f.at(imp.spec)
			}
			local[imp.name], called[imp.name] = names, imp.path
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(local[x.Name], sel.Sel.Name) {
			uses[called[x.Name]+"."+sel.Sel.Name] = f.at(sel)
		}
		return true
	})
	return uses
}

// readExceptions reads ambient.txt: file and name -> reason.
func readExceptions(text string) (map[[2]string]string, error) {
	exceptions := map[[2]string]string{}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 4 {
			return nil, fmt.Errorf("ambient.txt:%d: no reason is given", i+1)
		}
		exceptions[[2]string{words[0], words[1]}] = strings.Join(words[2:], " ")
	}
	return exceptions, nil
}

// TestAmbient: what is computed on every node reads nothing of one node.
func TestAmbient(t *testing.T) {
	m := theMap(t)
	text, err := os.ReadFile("ambient.txt")
	if err != nil {
		t.Fatal(err)
	}
	exceptions, err := readExceptions(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range load(t) {
		if !anyMatches(m.ambient, p.path) {
			continue
		}
		for _, f := range p.sources() {
			for name, at := range ambientUses(f) {
				key := [2]string{f.path, name}
				if _, ok := exceptions[key]; !ok {
					t.Errorf("%s: %s in a package whose results are the same on every node", at, name)
				}
				delete(exceptions, key)
			}
		}
	}
	for key := range exceptions {
		t.Errorf("ambient.txt: %s does not use %s", key[0], key[1])
	}
}

// TestAmbientFinds: the check finds what it is for.
func TestAmbientFinds(t *testing.T) {
	f := parseSource(t, "p/x.go", `package p
		import (
			clock "time"
			"math/rand"
			"os"
			"runtime"
		)
		var time struct{ Now int }
		var _ = clock.Now
		var _ = time.Now
		var _ = clock.Second
		var _ = os.Getenv("TZ") + os.Args[0]
		func f() { g := func() { runtime.GC(); _ = runtime.NumCPU() }; g() }
		var _ = rand.Int
	`)
	var got []string
	for name, at := range ambientUses(f) {
		got = append(got, at+" "+name)
	}
	slices.Sort(got)
	want := []string{"p/x.go:12 os.Getenv", "p/x.go:13 runtime.NumCPU", "p/x.go:4 math/rand", "p/x.go:9 time.Now"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if _, err := readExceptions("sql/x.go time.Now because"); err == nil {
		t.Error("an exception with one word of a reason is accepted")
	}
}
