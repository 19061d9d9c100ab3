package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func TestBindColumns(t *testing.T) {
	cols := []Column{
		{"a", datum.T(datum.Int4)}, {"b", datum.T(datum.Text.Array)}, {"c", datum.T(datum.JSON)}, {"d", datum.T(datum.Date)},
	}
	c := &Ctx{Format: &datum.ContractFormat}
	for _, x := range []struct{ name, input, want string }{
		{"jsonb_to_recordset", `[{"a":1,"b":["x",null],"c":{"k":2},"d":"2020-01-02"},{"a":"7","z":1}]`,
			`1 {x,NULL} {"k": 2} 2020-01-02; 7 NULL NULL NULL`},
		{"json_to_record", `{"a":null,"d":"2020-01-02"}`, "NULL NULL NULL 2020-01-02"},
		{"json_to_recordset", `{"a":1}`, "22023 cannot call json_to_recordset on an object"},
		{"jsonb_to_recordset", `[1]`, "22023 argument of jsonb_to_recordset must be an array of objects"},
		{"jsonb_to_record", `{"a":"x"}`, "22P02 invalid input syntax for type integer: \"x\""},
		{"jsonb_to_record", `{"b":[["x"],["y"]]}`, "NULL {{x},{y}} NULL NULL"},
		{"jsonb_to_record", `{"b":[["x"],["y","z"]]}`, "22P02 malformed JSON array"},
		{"jsonb_to_record", `{"b":"{p,q}"}`, "NULL {p,q} NULL NULL"},
		{"jsonb_to_record", `{"b":5}`, "22P02 expected JSON array"},
		{"jsonb_to_recordset", `{}`, "22023 cannot call jsonb_to_recordset on a non-array"},
		{"jsonb_to_record", `[1]`, "22023 cannot call populate_composite on an array"},
	} {
		f := LookupFuncs(x.name)[0]
		set, err := f.BindColumns(cols)
		if err != nil {
			t.Fatal(err)
		}
		in, err := f.Args[0].Parse(x.input, -1, c.Format)
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		err = set(c, []datum.Datum{in}, func(vals []datum.Datum) error {
			var row []string
			for i, v := range vals {
				if v.IsNull() {
					row = append(row, "NULL")
				} else {
					row = append(row, string(cols[i].Type.Append(nil, v, c.Format)))
				}
			}
			rows = append(rows, strings.Join(row, " "))
			return nil
		})
		got := strings.Join(rows, "; ")
		if e, ok := pgerr.From(err); ok {
			got = fmt.Sprintf("%s %s", e.Code, e.Message)
		}
		if got != x.want {
			t.Errorf("%s(%s): got %s, want %s", x.name, x.input, got, x.want)
		}
	}
	if _, err := LookupFuncs("lower")[0].BindColumns(cols); pgerr.CodeOf(err) != pgerr.SyntaxError {
		t.Errorf("lower with columns: %v", err)
	}
}

func TestPopulateRecord(t *testing.T) {
	point := datum.NewComposite(1<<31+10, "point2", []datum.Field{{Name: "x", Type: datum.T(datum.Int4)}, {Name: "y", Type: datum.T(datum.Int4)}})
	pair := datum.NewComposite(1<<31+11, "pair", []datum.Field{{Name: "p", Type: datum.T(point)}, {Name: "n", Type: datum.T(datum.Text)}})
	c := &Ctx{Format: &datum.ContractFormat}
	f, m, err := ResolveFunc("jsonb_populate_record", []datum.Type{datum.T(pair), datum.T(datum.JSONB)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	args, ret, err := ResolvePolymorphic(m.Args, f.Ret, []datum.Type{datum.T(pair), datum.T(datum.JSONB)})
	if err != nil || ret.Desc != pair {
		t.Fatal(ret, err)
	}
	eval, err := f.BindEval(args, ret)
	if err != nil {
		t.Fatal(err)
	}
	in, err := datum.ParseJSONB(`{"p":{"x":1,"y":2},"n":"one"}`)
	if err != nil {
		t.Fatal(err)
	}
	d, err := eval(c, []datum.Datum{datum.Null, in})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(pair.Append(nil, d, c.Format)); got != `("(1,2)",one)` {
		t.Errorf("got %s", got)
	}
	// And back.
	toJSON, _, err := ResolveFunc("row_to_json", []datum.Type{datum.T(pair)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if eval, err = toJSON.BindEval([]datum.Type{datum.T(pair)}, datum.T(datum.JSON)); err != nil {
		t.Fatal(err)
	}
	if d, err = eval(c, []datum.Datum{d}); err != nil || d.Str() != `{"p":{"x":1,"y":2},"n":"one"}` {
		t.Errorf("row_to_json: %s %v", d.Str(), err)
	}
}
