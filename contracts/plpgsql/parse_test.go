package plpgsql

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// function makes a descriptor f(n integer) RETURNS integer with a body.
func function(body string) *catalog.Func {
	return &catalog.Func{
		OID: catalog.FirstUserOID, Version: 1, Schema: "blockchain", Name: "f", Kind: catalog.Function, Language: "plpgsql",
		Ret: datum.T(datum.Int4), RetOID: datum.Int4OID, Body: body, Volatility: "v",
		Args: []catalog.Arg{{Name: "n", Mode: catalog.In, TypeOID: datum.Int4OID, TypMod: -1, Type: datum.T(datum.Int4)}},
	}
}

func TestExpressionsAreCutOut(t *testing.T) {
	body, _, _, err := parseBody(function(`
BEGIN
  /* a comment */ n := n + (SELECT max(x) FROM t WHERE a = ';') -- and another
    ;
  IF n > 1 AND (n < 3) THEN
    PERFORM g(n, 'THEN');
  END IF;
  SELECT a, b FROM t INTO n WHERE c = 1;
END`))
	if err != nil {
		t.Fatal(err)
	}
	set := body.body[0].(*assignStmt)
	if got, want := set.value.text, "n + (SELECT max(x) FROM t WHERE a = ';')"; got != want {
		t.Errorf("value is %q, want %q", got, want)
	}
	if got, want := set.value.assign, "n := n + (SELECT max(x) FROM t WHERE a = ';')"; got != want {
		t.Errorf("assignment is %q, want %q", got, want)
	}
	if set.line() != 3 {
		t.Errorf("assignment is on line %d, want 3", set.line())
	}
	cond := body.body[1].(*ifStmt)
	if got, want := cond.arms[0].cond.text, "n > 1 AND (n < 3)"; got != want {
		t.Errorf("condition is %q, want %q", got, want)
	}
	call := cond.arms[0].body[0].(*performStmt)
	if got, want := call.query.text, "SELECT g(n, 'THEN')"; got != want {
		t.Errorf("PERFORM runs %q, want %q", got, want)
	}
	sel := body.body[2].(*sqlStmt)
	if got, want := sel.query.text, "SELECT a, b FROM t        WHERE c = 1"; got != want {
		t.Errorf("query is %q, want %q", got, want)
	}
}

func TestLabelsAndNamesAreFound(t *testing.T) {
	_, vars, found, err := parseBody(function(`
<<a>>
DECLARE v int; w record;
BEGIN
  DECLARE v text;
  BEGIN
    a.v := 1; v := 'x'; f.n := 2; w.x := 1; $1 := 3; a.w.y := 4; found := true;
  END;
END`))
	if err != nil {
		t.Fatal(err)
	}
	if len(vars) != 5 || vars[0].name != "n" || found.name != "found" {
		t.Errorf("%d variables, first %q", len(vars), vars[0].name)
	}
}

// TestNestingIsBounded: deep nesting is an error and not the end of the
// process.
func TestNestingIsBounded(t *testing.T) {
	deep := strings.Repeat("BEGIN ", 100000)
	_, _, _, err := parseBody(function(deep))
	if pgerr.CodeOf(err) != pgerr.StatementTooComplex {
		t.Errorf("%v, want 54001", err)
	}
}

func TestNotUTF8(t *testing.T) {
	for _, body := range []string{"BEGIN \xff END", "BEGIN \x00 END"} {
		if _, _, _, err := parseBody(function(body)); pgerr.CodeOf(err) != pgerr.CharacterNotInRepertoire {
			t.Errorf("%q: %v, want 22021", body, err)
		}
	}
}

// FuzzCompile: whatever the text, compilation and checking end in a result or a
// report with a SQLSTATE, and its position lies in the text.
func FuzzCompile(f *testing.F) {
	files, _ := filepath.Glob("../testdata/*")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for i, part := range strings.Split(string(data), "$$") {
			if i%2 == 1 {
				f.Add(part)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		fn, err := Compile(function(body), Options{SearchPath: []string{"blockchain"}, Contract: true})
		if err == nil {
			for _, err := range fn.Check(nil) {
				report(t, err)
			}
			return
		}
		report(t, err)
		if e, _ := pgerr.From(err); e.InternalPosition > len(body)+1 {
			t.Errorf("position %d in a text of %d bytes", e.InternalPosition, len(body))
		}
	})
}

func report(t *testing.T, err error) {
	t.Helper()
	if e, ok := pgerr.From(err); !ok || len(e.Code) != 5 || e.Message == "" {
		t.Errorf("not a report: %v", err)
	}
}

// parseBody parses the body of f and gives all its variables.
func parseBody(f *catalog.Func) (body *block, vars []*variable, found *variable, err error) {
	p := &parser{src: f.Body, def: f}
	body, err = p.parse()
	return body, p.vars, p.found, err
}
