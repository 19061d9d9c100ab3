package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// systemCtx is a session with a small catalog that answers with what it was asked.
func systemCtx(notices *[]string) *Ctx {
	format := datum.ContractFormat
	format.RegOID = func(_ *datum.Desc, name string) (datum.OID, error) {
		if name == "orders" {
			return 70000, nil
		}
		return 0, pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", name)
	}
	settings := map[string]string{"search_path": "blockchain, private"}
	s := testSession()
	s.SearchPath = []string{"blockchain", "private"}
	s.ServerVersion, s.PID, s.TxTime, s.TxID = "PostgreSQL 15.0", 12, 86400e6, 77
	s.Setting = func(name string) (string, bool) { v, ok := settings[name]; return v, ok }
	s.SetSetting = func(name, value string, local bool) error { settings[name] = value; return nil }
	s.Notify = func(channel, payload string) error {
		*notices = append(*notices, channel+"="+payload)
		return nil
	}
	s.Channels = func() []string { return []string{"a", "b"} }
	return &Ctx{Format: &format, Session: s,
		Notice: func(severity string, e *pgerr.Error) { *notices = append(*notices, severity+": "+e.Message) },
		Catalog: CatalogInfo{
			Text: func(function string, args ...int64) (string, bool) {
				if strings.HasSuffix(function, "_size") {
					return "8192", true
				}
				return fmt.Sprint(function, args), args[0] != 404
			},
			Visible: func(function string, oid datum.OID) (bool, bool) { return oid == 70000, oid != 404 },
			Privilege: func(function, user, object, privilege string) (bool, error) {
				*notices = append(*notices, strings.Join([]string{function, user, strings.ReplaceAll(object, "\x00", "."), privilege}, " "))
				return user == "postgres", nil
			},
			Named: func(function string, args ...string) (string, bool) {
				return function + "(" + strings.Join(args, ",") + ")", args[0] != "none"
			},
		}}
}

func TestSystemFunctions(t *testing.T) {
	var notices []string
	c := systemCtx(&notices)
	for _, x := range []struct{ expr, want, notice string }{
		{"version()", "text | PostgreSQL 15.0", ""},
		{"current_database()", "name | u8", ""},
		{"current_user()", "name | postgres", ""},
		{"current_schema()", "name | blockchain", ""},
		{"current_schemas(true)", "name[] | {pg_catalog,blockchain,private}", ""},
		{"current_schemas(false)", "name[] | {blockchain,private}", ""},
		{"pg_backend_pid()", "integer | 12", ""},
		{"txid_current()", "bigint | 77", ""},
		{"now()", "timestamp with time zone | 2000-01-02 00:00:00+00", ""},
		{"current_date()", "date | 2000-01-02", ""},
		{"localtimestamp()", "timestamp without time zone | 2000-01-02 00:00:00", ""},
		{"current_time()", "time with time zone | 00:00:00+00", ""},
		{"localtime()", "time without time zone | 00:00:00", ""},
		{"age(timestamp '2000-01-01')", "interval | 1 day", ""},
		{"age(timestamptz '2000-01-01')", "interval | 1 day", ""},
		{"timezone('EST', timetz '10:00+00')", "time with time zone | 05:00:00-05", ""},
		{"current_setting('search_path')", "text | blockchain, private", ""},
		{"current_setting('nope')", "!42704 unrecognized configuration parameter \"nope\"", ""},
		{"current_setting('nope', true)", "text | NULL", ""},
		{"set_config('my.x', 'y', false)", "text | y", ""},
		{"set_config(NULL, 'y', false)", "!22004 SET requires parameter name", ""},
		{"pg_table_is_visible(70000)", "boolean | t", ""},
		{"pg_type_is_visible(404)", "boolean | NULL", ""},
		{"pg_get_constraintdef(5)", "text | pg_get_constraintdef[5]", ""},
		{"pg_get_indexdef(5, 2, true)", "text | pg_get_indexdef[5 2 1]", ""},
		{"pg_get_viewdef('orders')", "text | pg_get_viewdef[70000]", ""},
		{"obj_description(5, 'pg_class')", "text | obj_description[5]", ""},
		{"col_description(404, 1)", "text | NULL", ""},
		{"pg_get_userbyid(404)", "name | unknown (OID=404)", ""},
		{"pg_table_size('orders')", "bigint | 8192", ""},
		{"pg_relation_size(70000)", "bigint | 8192", ""},
		{"pg_get_serial_sequence('orders', 'id')", "text | pg_get_serial_sequence(orders,id)", ""},
		{"pg_get_serial_sequence('none', 'id')", "text | NULL", ""},
		{"has_table_privilege('orders', 'SELECT')", "boolean | t", "has_table_privilege postgres orders SELECT"},
		{"has_table_privilege('bob', 70000, 'SELECT')", "boolean | f", "has_table_privilege bob 70000 SELECT"},
		{"has_column_privilege('orders', int2 '2', 'SELECT')", "boolean | t", "has_column_privilege postgres orders.2 SELECT"},
		{"pg_has_role('bob', 'admin', 'MEMBER')", "boolean | f", "pg_has_role bob admin MEMBER"},
		{"to_regclass('orders')", "regclass | 70000", ""},
		{"to_regclass('nope')", "regclass | NULL", ""},
		{"regclass('nope')", "!42P01 relation \"nope\" does not exist", ""},
		{"pg_notify('ch', 'hello')", "void | ", "ch=hello"},
		{"pg_notify('', 'hello')", "!22023 channel name cannot be empty", ""},
		{"pg_listening_channels()", "text | a ; b", ""},
		{"pg_advisory_unlock(1)", "boolean | f", "WARNING: you don't own a lock of type ExclusiveLock"},
		{"pg_advisory_unlock_all()", "void | ", ""},
		{"pg_advisory_lock(1)", "!0A000 function pg_advisory_lock(bigint) is not supported", ""},
		{"oidvectortypes('23 25')", "text | integer, text", ""},
		{"pg_options_to_table(_text '{a=b,c}')", "record | (a,b) ; (c,)", ""},
		{"pg_is_in_recovery()", "boolean | f", ""},
	} {
		notices = notices[:0]
		if got := evalLine(c, x.expr); got != x.want {
			t.Errorf("%s: got %s, want %s", x.expr, got, x.want)
		}
		if got := strings.Join(notices, "; "); got != x.notice {
			t.Errorf("%s: notices %q, want %q", x.expr, got, x.notice)
		}
	}
	if d, err := callNow(t, c, "random"); err != nil || d.Float() < 0 || d.Float() >= 1 {
		t.Errorf("random() = %v, %v", d.Float(), err)
	}
	if d, err := callNow(t, c, "gen_random_uuid"); err != nil || len(d.Bytes()) != 16 || d.Bytes()[6]>>4 != 4 {
		t.Errorf("gen_random_uuid(): %v", err)
	}
	if rows := strings.Split(evalLine(c, "pg_get_keywords()"), " ; "); len(rows) != len(strings.Fields(keywords)) {
		t.Errorf("%d key words", len(rows))
	}
}

// TestUserOverloads covers what only functions of users can bring about.
func TestUserOverloads(t *testing.T) {
	i4, txt := datum.Int4, datum.Text
	ints := datum.Int4.Array
	sig := func(args ...*datum.Desc) Signature { return Signature{Args: args} }
	variadic := Signature{Args: []*datum.Desc{ints}, Variadic: true}
	defaults := Signature{Args: []*datum.Desc{i4, i4}, Defaults: 1, ArgNames: []string{"a", "b"}}
	defaults2 := Signature{Args: []*datum.Desc{i4, txt}, Defaults: 1, ArgNames: []string{"a", "c"}}
	one := []datum.Type{datum.T(i4)}
	two := []datum.Type{datum.T(i4), datum.T(i4)}
	unknown := []datum.Type{datum.T(datum.Unknown)}
	for _, x := range []struct {
		name    string
		cands   []Signature
		actual  []datum.Type
		names   []string
		outcome Outcome
		index   int
		detail  string
	}{
		{"exact before variadic", []Signature{variadic, sig(i4)}, one, nil, Found, 1, "[] 0 []"},
		{"exact before variadic, other order", []Signature{sig(i4), variadic}, one, nil, Found, 0, "[] 0 []"},
		{"variadic collects", []Signature{variadic, sig(i4)}, two, nil, Found, 0, "[] 2 []"},
		{"variadic needs one", []Signature{variadic}, nil, nil, None, 0, ""},
		{"exact before defaults", []Signature{defaults, sig(i4)}, one, nil, Found, 1, "[] 0 []"},
		{"defaults fill", []Signature{defaults}, one, nil, Found, 0, "[] 0 [1]"},
		{"two with defaults", []Signature{defaults, defaults2}, one, nil, Ambiguous, 0, ""},
		{"earlier schema wins", []Signature{sig(i4), sig(i4)}, one, nil, Found, 0, "[] 0 []"},
		{"named", []Signature{defaults, defaults2}, two, []string{"b", "a"}, Found, 0, "[1 0] 0 []"},
		{"named with default", []Signature{defaults, defaults2}, one, []string{"a"}, Ambiguous, 0, ""},
		{"name unknown", []Signature{defaults}, one, []string{"x"}, None, 0, ""},
		{"name given twice", []Signature{defaults}, two, []string{"a"}, None, 0, ""},
		{"required left out", []Signature{defaults}, one, []string{"b"}, None, 0, ""},
		{"mixed", []Signature{defaults}, two, []string{"b"}, Found, 0, "[0 1] 0 []"},
		{"unknown prefers text", []Signature{sig(i4), sig(txt)}, unknown, nil, Found, 1, "[] 0 []"},
		{"no candidate", []Signature{sig(datum.Date)}, one, nil, None, 0, ""},
		{"polymorphic", []Signature{sig(datum.AnyElement, datum.AnyArray)}, []datum.Type{datum.T(i4), datum.T(ints)}, nil, Found, 0, "[] 0 []"},
		{"polymorphic clash", []Signature{sig(datum.AnyElement, datum.AnyArray)}, []datum.Type{datum.T(txt), datum.T(ints)}, nil, None, 0, ""},
	} {
		m, outcome := SelectCandidate(x.cands, x.actual, x.names)
		if outcome != x.outcome || outcome == Found && m.Index != x.index {
			t.Errorf("%s: outcome %d, candidate %d", x.name, outcome, m.Index)
			continue
		}
		if got := fmt.Sprint(m.Order, m.Collect, m.Missing); outcome == Found && got != x.detail {
			t.Errorf("%s: %s, want %s", x.name, got, x.detail)
		}
	}
}

func TestResolutionErrors(t *testing.T) {
	_, err := ResolveOperator("+", datum.T(datum.Int4), datum.T(datum.Text))
	e, _ := pgerr.From(err)
	if e.Code != "42883" || e.Message != "operator does not exist: integer + text" || !strings.HasPrefix(e.Hint, "No operator matches the given name and argument types.") {
		t.Errorf("%+v", e)
	}
	_, err = ResolveOperator("-", datum.Type{}, datum.T(datum.Text))
	if e, _ = pgerr.From(err); e.Message != "operator does not exist: - text" {
		t.Errorf("%+v", e)
	}
	_, err = ResolveOperator("+", datum.T(datum.Unknown), datum.T(datum.Unknown))
	if e, _ = pgerr.From(err); e.Code != "42725" || e.Message != "operator is not unique: unknown + unknown" {
		t.Errorf("%+v", e)
	}
	err = FuncError("f", []datum.Type{datum.T(datum.Int4), datum.T(datum.Unknown)}, []string{"x"}, None)
	if e, _ = pgerr.From(err); e.Message != "function f(integer, x => unknown) does not exist" {
		t.Errorf("%+v", e)
	}
	_, err = CommonType([]datum.Type{datum.T(datum.Int4), datum.T(datum.Text)}, "CASE")
	if e, _ = pgerr.From(err); e.Code != "42804" || e.Message != "CASE types integer and text cannot be matched" {
		t.Errorf("%+v", e)
	}
	if f := FuncByOID(870); f.String() != "lower(text)" {
		t.Errorf("%s", f)
	}
	if op := OperatorByOID(551); op.Name != "+" || op.Func != FuncByOID(177) {
		t.Errorf("%+v", op)
	}
}
