package builtin

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
)

// facts reads a file of rows copied from PostgreSQL's catalog; lines that begin
// with # say how.
func facts(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if l[0] != '#' {
			rows = append(rows, l)
		}
	}
	return rows
}

func oids(types []*datum.Desc) string {
	var s []string
	for _, d := range types {
		s = append(s, fmt.Sprint(d.OID))
	}
	return strings.Join(s, ",")
}

func flagText(v bool) string {
	if v {
		return "t"
	}
	return "f"
}

func TestProcTable(t *testing.T) {
	want := make(map[string]bool)
	for _, l := range facts(t, "pg_proc.txt") {
		want[l] = true
	}
	n := 0
	for _, f := range Funcs() {
		if f.OID >= 9000 {
			continue // ours
		}
		n++
		var variadic datum.OID
		if f.Variadic {
			last := f.Args[len(f.Args)-1]
			if variadic = last.OID; last != datum.Any {
				variadic = last.Elem.OID
			}
		}
		strict := f.Strict && f.Kind != Aggregate // pg_proc calls no aggregate strict
		row := fmt.Sprintf("%d %s (%s) %d %d %c %s %s %c %d", f.OID, f.Name, oids(f.Args), variadic, f.Ret.OID,
			f.Kind, flagText(f.RetSet), flagText(strict), f.Volatility, f.Defaults)
		if !want[row] && f.Name != "acldefault" { // whose aclitem is text here
			t.Errorf("not in pg_proc: %s", row)
		}
	}
	if n != len(want) {
		t.Errorf("%d functions, %d facts", n, len(want))
	}
}

func TestOperatorTable(t *testing.T) {
	var got []string
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	for _, op := range Operators() {
		left := datum.OID(0)
		if op.Left != nil {
			left = op.Left.OID
		}
		got = append(got, fmt.Sprintf("%d %s %d %d %d %s %s", op.OID, op.Name, left, op.Right.OID, op.Func.OID,
			dash(op.Commutator), dash(op.Negator)))
	}
	if want := facts(t, "pg_operator.txt"); !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("got %q, want %q", got[i], want[i])
			}
		}
		t.Fatalf("%d operators, %d facts", len(got), len(want))
	}
}

// TestCastTable also demands that no cast between types that exist is missing.
func TestCastTable(t *testing.T) {
	var want, got []string
	for _, l := range facts(t, "pg_cast.txt") {
		var source, target datum.OID
		fmt.Sscan(l, &source, &target)
		if datum.ByOID(source) != nil && datum.ByOID(target) != nil {
			want = append(want, l)
		}
	}
	for _, c := range Casts() {
		f := datum.OID(0)
		if c.Func != nil {
			f = c.Func.OID
		}
		got = append(got, fmt.Sprintf("%d %d %d %c %c", c.Source.OID, c.Target.OID, f, c.Context, c.Method))
	}
	if !slices.Equal(got, want) {
		for _, l := range want {
			if !slices.Contains(got, l) {
				t.Errorf("missing: %s", l)
			}
		}
		for _, l := range got {
			if !slices.Contains(want, l) {
				t.Errorf("extra: %s", l)
			}
		}
	}
}

// TestOwnOIDs: the functions that PostgreSQL does not have lie in their range,
// and nothing is named twice with the same arguments.
func TestOwnOIDs(t *testing.T) {
	seen := make(map[string]datum.OID)
	last := datum.OID(0)
	for _, f := range Funcs() {
		if f.OID <= last {
			t.Errorf("%s: OID %d after %d", f, f.OID, last)
		}
		last = f.OID
		if old := seen[implKey(f)]; old != 0 {
			t.Errorf("%s: OIDs %d and %d", f, old, f.OID)
		}
		seen[implKey(f)] = f.OID
	}
	if last >= 9100 {
		t.Errorf("OID %d lies outside the reserved range", last)
	}
}

// TestEveryImplementationIsUsed finds names in the implementation maps that no
// row of the table refers to: misspelled ones.
func TestEveryImplementationIsUsed(t *testing.T) {
	used := make(map[string]bool)
	for _, table := range [][]procRow{procs, chainProcs, valueProcs} {
		for i := range table {
			used[table[i].impl] = true
			used[implKey(parseProc(&table[i]))] = true
		}
	}
	var unused []string
	collect := func(name string) {
		if !used[name] {
			unused = append(unused, name)
		}
	}
	for _, m := range evals {
		for k := range m {
			collect(k)
		}
	}
	for _, m := range binds {
		for k := range m {
			collect(k)
		}
	}
	for _, m := range sets {
		for k := range m {
			collect(k)
		}
	}
	for _, m := range bindSets {
		for k := range m {
			collect(k)
		}
	}
	slices.Sort(unused)
	if len(unused) > 0 {
		t.Errorf("unused: %s", strings.Join(unused, " "))
	}
}

// TestOperatorsAreBuilt: every operator has an implementation, but for those
// listed.
func TestOperatorsAreBuilt(t *testing.T) {
	for _, op := range Operators() {
		if !op.Func.Built() && !strings.HasPrefix(op.Name, "*") { // record_image_eq and its like
			t.Errorf("operator %d %s (%s) is not built", op.OID, op.Name, op.Func)
		}
	}
}

// TestClientFunctions: what the introspection of clients calls exists.
func TestClientFunctions(t *testing.T) {
	names := strings.Fields(`pg_table_is_visible pg_get_expr pg_get_userbyid format_type pg_get_constraintdef unnest
		array_to_string obj_description pg_get_indexdef quote_ident pg_get_function_arguments pg_get_function_result
		acldefault pg_function_is_visible pg_get_serial_sequence array_agg generate_series pg_get_viewdef
		pg_type_is_visible current_database pg_tablespace_location generate_subscripts current_schemas pg_size_pretty
		array_upper col_description shobj_description quote_literal current_schema pg_table_size pg_encoding_to_char
		current_setting lower pg_partition_ancestors pg_get_triggerdef pg_get_function_sqlbody version
		pg_options_to_table pg_get_statisticsobjdef_columns string_agg pg_get_ruledef pg_get_partkeydef
		pg_opclass_is_visible format pg_get_functiondef array_remove replace substring has_schema_privilege set_config
		substr pg_get_function_identity_arguments pg_relation_is_publishable has_database_privilege pg_database_size
		pg_has_role pg_describe_object pg_operator_is_visible pg_conversion_is_visible pg_tablespace_size
		pg_opfamily_is_visible pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible
		pg_ts_template_is_visible pg_char_to_encoding pg_collation_is_visible getdatabaseencoding
		pg_statistics_obj_is_visible pg_listening_channels json_build_object row_number pg_get_keywords
		pg_advisory_unlock_all oid pg_index_column_has_property pg_is_in_recovery`)
	for _, name := range names {
		built := false
		for _, f := range LookupFuncs(name) {
			built = built || f.Built()
		}
		if !built {
			t.Errorf("%s does not exist", name)
		}
	}
}
