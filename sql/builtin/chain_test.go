package builtin

import (
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func callNow(t *testing.T, c *Ctx, name string) (datum.Datum, error) {
	t.Helper()
	f, _, err := ResolveFunc(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f.Eval(c, nil)
}

func TestTransactionFunctions(t *testing.T) {
	tx := &TxInfo{ID: [32]byte{1, 2, 3}, User: "alice", Org: "org1", Time: 42}
	c := &Ctx{Format: &datum.ContractFormat, Tx: tx, Height: 7, BlockTime: 99}
	for name, want := range map[string]string{
		"tx_time": "2000-01-01 00:00:00.000042+00", "tx_user": "alice", "tx_org": "org1", "block_height": "7",
		"block_timestamp": "2000-01-01 00:00:00.000099+00",
		"tx_id":           `\x010203` + strings.Repeat("00", 29),
	} {
		d, err := callNow(t, c, name)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := string(LookupFuncs(name)[0].Ret.Append(nil, d, c.Format)); got != want {
			t.Errorf("%s() = %s, want %s", name, got, want)
		}
	}
	// The draws of a transaction are fixed by its id: these are part of the
	// protocol.
	var got []string
	for range 2 {
		u, err := callNow(t, c, "tx_uuid")
		if err != nil {
			t.Fatal(err)
		}
		r, err := callNow(t, c, "tx_random")
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Float(); f < 0 || f >= 1 {
			t.Errorf("tx_random() = %v", f)
		}
		got = append(got, string(datum.UUID.Append(nil, u, c.Format)), string(datum.Float8.Append(nil, r, c.Format)))
	}
	want := "d17ee3e1-ee9a-43bf-86fe-e04b4cf592ab 0.011071285850325463 c37016b9-6505-4527-adeb-393283637bc6 0.05732302134376843"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("draws are %s, want %s", s, want)
	}
	if tx.Draws != 4 {
		t.Errorf("%d draws counted", tx.Draws)
	}
	c.Tx = nil
	for _, name := range []string{"tx_time", "tx_id", "tx_user", "tx_org", "tx_uuid", "tx_random"} {
		_, err := callNow(t, c, name)
		if e, ok := pgerr.From(err); !ok || e.Code != pgerr.ObjectNotInPrerequisiteState || e.Hint == "" {
			t.Errorf("%s() outside a transaction: %v", name, err)
		}
	}
}

// stableInContracts lists the stable functions that contracts may call: what
// they depend on - time zone, date style, the snapshot - is fixed there.
var stableInContracts = map[string]string{
	"the transaction and the snapshot": "tx_time tx_id tx_user tx_org block_height block_timestamp",
	"the zone is UTC": `date_trunc date_part extract timestamptz date time timetz to_char to_date to_timestamp timestamp
		make_timestamptz generate_series overlaps timestamptz_pl_interval timestamptz_mi_interval
		interval_pl_timestamptz timezone age jsonb_path_exists_tz jsonb_path_match_tz jsonb_path_query_tz
		jsonb_path_query_array_tz jsonb_path_query_first_tz`,
	"text has the contract's format": `concat concat_ws format quote_literal quote_nullable textanycat anytextcat
		array_to_string to_json to_jsonb json_build_array json_build_object jsonb_build_array jsonb_build_object
		row_to_json array_to_json json_agg jsonb_agg json_object_agg jsonb_object_agg json_populate_record
		jsonb_populate_record json_populate_recordset jsonb_populate_recordset`,
	"the form has nothing of the session": `range_send multirange_send array_send record_send textsend namesend bpcharsend
		varcharsend anyarray_send enum_send anycompatiblearray_send`,
	"the labels are catalog rows of the footprint": "enum_first enum_last enum_range",
	"the C locale and one encoding":                "to_number convert_from convert_to",
	"the types are those of the statement":         "pg_typeof",
}

// TestEveryUnstableFunctionIsRefused: a function that is not immutable must say
// why contracts may not call it, or be listed with the reason why they may.
func TestEveryUnstableFunctionIsRefused(t *testing.T) {
	volatileAllowed := map[string]bool{"tx_uuid": true, "tx_random": true}
	allowed := make(map[string]bool)
	for _, names := range stableInContracts {
		for _, n := range strings.Fields(names) {
			allowed[n] = true
			if len(LookupFuncs(n)) == 0 {
				t.Errorf("unknown function %s", n)
			}
		}
	}
	for _, f := range Funcs() {
		if f.Contract != nil || f.Volatility == Immutable || f.Kind == Window || !f.Built() {
			continue
		}
		if f.Volatility == Volatile && volatileAllowed[f.Name] {
			continue
		}
		if f.Volatility == Stable && (allowed[f.Name] || isComparisonAcrossZones(f)) {
			continue
		}
		t.Errorf("%s (%c) is neither refused in contracts nor listed", f, f.Volatility)
	}
}

func isComparisonAcrossZones(f *Func) bool {
	return len(f.Args) == 2 && f.Args[0] != f.Args[1] && (f.Args[0] == datum.TimestampTZ || f.Args[1] == datum.TimestampTZ) &&
		(f.Ret == datum.BoolType || f.Ret == datum.Int4)
}

// TestRefusalsNameFunctions: a refusal of what does not exist is a misspelling,
// and a replacement must exist.
func TestRefusalsNameFunctions(t *testing.T) {
	for name, r := range refusals {
		if len(LookupFuncs(name)) == 0 {
			t.Errorf("refusal of unknown function %s", name)
		}
		if fn, _, ok := strings.Cut(r.Replacement, "("); ok && len(LookupFuncs(fn)) == 0 {
			t.Errorf("%s: replacement %s does not exist", name, r.Replacement)
		}
	}
}

// TestRefusedFunctionsNeedASession: even if the check were missed, a refused
// function must not read the node's clock, session or random source in a
// contract.
func TestRefusedFunctionsNeedASession(t *testing.T) {
	c := &Ctx{Format: &datum.ContractFormat, Tx: &TxInfo{}}
	constant := strings.Fields(`pg_advisory_unlock_all pg_is_in_recovery pg_client_encoding getdatabaseencoding
		pg_encoding_to_char pg_char_to_encoding pg_size_pretty pg_size_bytes pg_relation_is_publishable
		pg_tablespace_location pg_get_expr pg_get_keywords pg_advisory_unlock pg_advisory_unlock_shared pg_options_to_table
		pg_partition_ancestors`)
	for _, f := range Funcs() {
		if f.Contract == nil || f.Eval == nil || len(f.Args) > 0 {
			continue
		}
		known := false
		for _, n := range constant {
			known = known || n == f.Name
		}
		if _, err := f.Eval(c, nil); err == nil && !known {
			t.Errorf("%s answers in a contract", f)
		}
	}
}

func TestBudget(t *testing.T) {
	c := &Ctx{Format: &datum.ContractFormat, Budget: &Budget{Left: 100}}
	for _, expr := range []string{"repeat('x', 100000)", "generate_series(1, 1000000)", "array_fill(1, _int4 '{100000}')",
		"lpad('x', 100000)", "factorial(10000)"} {
		c.Budget.Left = 100
		if got := evalLine(c, expr); !strings.HasPrefix(got, "!54000") {
			t.Errorf("%s: %.60s", expr, got)
		}
	}
}

func TestSpread(t *testing.T) {
	c := &Ctx{Format: &datum.ContractFormat}
	array, err := datum.Text.Array.Parse("{a,NULL,b}", -1, c.Format)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		args []datum.Datum
		want string
	}{
		{"concat", []datum.Datum{array}, "ab"},
		{"concat_ws", []datum.Datum{datum.Str("-"), array}, "a-b"},
		{"format", []datum.Datum{datum.Str("%s|%s|%3$s"), array}, "a||b"},
		{"format", []datum.Datum{datum.Str("x"), datum.Null}, "x"},
		{"json_build_array", []datum.Datum{array}, `["a", null, "b"]`},
		{"num_nulls", []datum.Datum{array}, "1"},
	} {
		types := []datum.Type{datum.T(datum.Text.Array)}
		if len(x.args) == 2 {
			types = []datum.Type{datum.T(datum.Text), types[0]}
		}
		for _, f := range LookupFuncs(x.name) {
			if !f.Variadic {
				continue
			}
			eval, err := f.Spread().BindEval(types, datum.T(f.Ret))
			if err != nil {
				t.Fatal(err)
			}
			d, err := eval(c, x.args)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(f.Ret.Append(nil, d, c.Format)); got != x.want {
				t.Errorf("%s: got %s, want %s", x.name, got, x.want)
			}
		}
	}
}
