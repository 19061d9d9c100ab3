package builtin

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// TestResolve compares overload resolution with PostgreSQL's parser, over all
// pairs of the types in testdata/resolve.txt. The file's header says how to
// read it.
func TestResolve(t *testing.T) {
	b, err := os.ReadFile("testdata/resolve.txt")
	if err != nil {
		t.Fatal(err)
	}
	var types []datum.Type
	n, bad := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if line[0] == '#' {
			types = typeList(strings.Fields(line[1:]))
			continue
		}
		head, tail, _ := strings.Cut(line, ": ")
		f := strings.Fields(head)
		left := typeList(strings.Split(f[2], ","))
		for i, want := range strings.Fields(tail) {
			if want == "*" {
				continue
			}
			n++
			got := resolveCase(f[0], f[1], append(left[:len(left):len(left)], types[i]))
			if got != want {
				if bad++; bad < 40 {
					t.Errorf("%s with %s: got %s, want %s", head, types[i].Name, got, want)
				}
			}
		}
	}
	t.Logf("%d cases, %d differ", n, bad)
}

func typeList(names []string) []datum.Type {
	var out []datum.Type
	for _, n := range names {
		if d, ok := TypeByName(n); ok {
			out = append(out, datum.T(d))
		}
	}
	return out
}

func resolveCase(kind, name string, args []datum.Type) string {
	if kind == "op" || kind == "pre" {
		var left datum.Type
		if kind == "op" {
			left = args[0]
		}
		op, err := ResolveOperator(name, left, args[len(args)-1])
		if err == nil {
			declared := []*datum.Desc{op.Right}
			if kind == "op" {
				declared = []*datum.Desc{op.Left, op.Right}
			}
			_, _, err = ResolvePolymorphic(declared, op.Func.Ret, args)
		}
		if err != nil {
			return errorMark(err)
		}
		return strconv.Itoa(int(op.OID))
	}
	f, m, err := ResolveFunc(name, args, nil)
	if len(args) == 1 && !m.Exact {
		if _, ok := CastFunc(name, args[0]); ok {
			return "cast"
		}
	}
	if err == nil {
		_, _, err = ResolvePolymorphic(m.Args, f.Ret, args)
	}
	if err != nil {
		return errorMark(err)
	}
	return strconv.Itoa(int(f.OID))
}

func errorMark(err error) string {
	switch code := pgerr.CodeOf(err); code {
	case pgerr.UndefinedFunction:
		return "."
	case pgerr.AmbiguousFunction:
		return "?"
	default:
		return "!" + string(code)
	}
}
