package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module = "github.com/tallystick/tallystick"
	root   = "../.." // of the module, from here
)

// pkg is one directory with Go files, tests included.
type pkg struct {
	path  string // relative to the module; "." for its root
	files []*source
}

// source is one Go file, parsed without resolving anything.
type source struct {
	path string // relative to the module
	test bool
	ast  *ast.File
	fset *token.FileSet
}

// load returns all packages of the module, sorted by path.
func load(t *testing.T) []*pkg {
	t.Helper()
	pkgs, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

// parsed parses the module once for all tests.
var parsed = sync.OnceValues(func() ([]*pkg, error) {
	fset := token.NewFileSet()
	byPath := map[string]*pkg{}
	var pkgs []*pkg
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != root && skipped(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := parseFile(fset, name)
		if err != nil {
			return err
		}
		dir := path.Dir(f.path)
		p := byPath[dir]
		if p == nil {
			p = &pkg{path: dir}
			byPath[dir] = p
			pkgs = append(pkgs, p)
		}
		p.files = append(p.files, f)
		return nil
	})
	slices.SortFunc(pkgs, func(a, b *pkg) int { return strings.Compare(a.path, b.path) })
	return pkgs, err
})

// skipped names the directories that the go command skips too.
func skipped(dir string) bool {
	return dir == "testdata" || dir == "vendor" || dir == "node_modules" || dir[0] == '.' || dir[0] == '_'
}

func parseFile(fset *token.FileSet, name string) (*source, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return nil, err
	}
	rel = filepath.ToSlash(rel)
	file, err := parser.ParseFile(fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{rel, strings.HasSuffix(rel, "_test.go"), file, fset}, nil
}

// parseSource parses one file given as text.
func parseSource(t *testing.T, name, text string) *source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return &source{name, strings.HasSuffix(name, "_test.go"), file, fset}
}

// at returns where a node stands, for a message.
func (s *source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

// imported is one import of a file.
type imported struct {
	spec *ast.ImportSpec
	path string
	name string // by which the file calls it
}

func (s *source) imports() []imported {
	var list []imported
	for _, spec := range s.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err) // the parser accepts no such file
		}
		name := path.Base(p)
		if name == "v2" {
			name = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		list = append(list, imported{spec, p, name})
	}
	return list
}

// within returns the path of a package relative to the module; false if it is
// none of the module's.
func within(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// matches reports whether a package is meant by a pattern of layers.txt.
func matches(pattern, p string) bool {
	if pattern == "..." {
		return true
	}
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return p == below || strings.HasPrefix(p, below+"/")
	}
	return p == pattern
}

func anyMatches(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, p) })
}
