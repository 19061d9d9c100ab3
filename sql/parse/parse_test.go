package parse

import (
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/pgerr"
)

func TestStatements(t *testing.T) {
	for _, c := range []struct {
		script string
		want   []string
	}{
		{"", nil},
		{" ; ;; ", nil},
		{"-- nothing but a comment", nil},
		{"select 1", []string{"select 1"}},
		{"  select 1 ; select ';' ;", []string{"select 1", "select ';'"}},
		{"select $$a;b$$;\n/* c; */ select 2", []string{"select $$a;b$$", "/* c; */ select 2"}},
		{"create function f() returns int language sql as $x$ select 1; $x$; select é", []string{"create function f() returns int language sql as $x$ select 1; $x$", "select é"}},
	} {
		list, err := Statements(c.script)
		if err != nil {
			t.Errorf("%q: %v", c.script, err)
			continue
		}
		if len(list) != len(c.want) {
			t.Errorf("%q: %d statements, want %d", c.script, len(list), len(c.want))
			continue
		}
		for i, st := range list {
			if st.Text != c.want[i] || st.Script[st.Offset:st.Offset+len(st.Text)] != st.Text || st.Node == nil {
				t.Errorf("%q: statement %d is %q at %d", c.script, i, st.Text, st.Offset)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, script string
		code         pgerr.Code
		position     int
	}{
		{"syntax", "select 1 fro m x where", pgerr.SyntaxError, 14},
		{"at the end", "select", "", 0}, // an empty select list is valid
		{"unfinished", "select (1", pgerr.SyntaxError, 10},
		{"characters, not bytes", "select 'ééé' fro m y", pgerr.SyntaxError, 18},
		{"second statement", "select 1; selec 2", pgerr.SyntaxError, 11},
		{"unterminated string", "select 'abc", pgerr.SyntaxError, 8},
		{"zero byte", "select '\x00'", pgerr.CharacterNotInRepertoire, 0},
		{"no UTF-8", "select '\xff'", pgerr.CharacterNotInRepertoire, 0},
		{"deep", "select " + strings.Repeat("(", MaxDepth+1) + "1" + strings.Repeat(")", MaxDepth+1), pgerr.StatementTooComplex, 0},
		{"long", "select '" + strings.Repeat("x", MaxBytes) + "'", pgerr.StatementTooComplex, 0},
	} {
		_, err := Statements(c.script)
		if c.code == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		e, ok := pgerr.From(err)
		if !ok || e.Code != c.code || e.Position != c.position {
			t.Errorf("%s: %v at %d, want %s at %d", c.name, err, e.Position, c.code, c.position)
		}
	}
}

func TestExpression(t *testing.T) {
	for _, text := range []string{"1 + 2", "a.b", "case when x then 1 end", "(select max(x) from t)", "f(x, y => 1)"} {
		if n, err := Expression(text); err != nil || n == nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, c := range []struct {
		text     string
		position int
	}{{"1 +", 4}, {"1; select 2", 0}, {"1, 2", 0}, {"x from t", 0}, {"", 0}, {"1 fro m", 7}} {
		_, err := Expression(c.text)
		e, ok := pgerr.From(err)
		if !ok || e.Code != pgerr.SyntaxError || e.Position != c.position {
			t.Errorf("%q: %v, position %d, want %d", c.text, err, e.Position, c.position)
		}
	}
}

func TestOne(t *testing.T) {
	if st, err := One(" select 1; "); err != nil || st.Text != "select 1" {
		t.Errorf("%q, %v", st.Text, err)
	}
	for _, text := range []string{"", "select 1; select 2"} {
		if _, err := One(text); pgerr.CodeOf(err) != pgerr.SyntaxError {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestClip(t *testing.T) {
	long := strings.Repeat("é", 50)
	if got := Clip(long); got != strings.Repeat("é", 30)+"..." {
		t.Errorf("%q", got)
	}
	if got := Clip("short"); got != "short" {
		t.Errorf("%q", got)
	}
}

// FuzzStatements: whatever comes, it is parsed or refused with a SQLSTATE, and
// the statements are where they say they are.
func FuzzStatements(f *testing.F) {
	for _, s := range []string{"select 1; select 2", "create function f() as $$ x $$", "select '", "((((", "\x00", "/* /* */", "select 1 fro m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		list, err := Statements(script)
		if err != nil {
			if _, ok := pgerr.From(err); !ok {
				t.Fatalf("%q: %v", script, err)
			}
			return
		}
		for _, st := range list {
			if st.Script[st.Offset:st.Offset+len(st.Text)] != st.Text {
				t.Fatalf("%q: statement %q at %d", script, st.Text, st.Offset)
			}
		}
	})
}
