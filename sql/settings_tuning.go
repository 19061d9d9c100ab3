package sql

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// tuning has parameters of PostgreSQL that tune or watch parts which this
// engine does not have: planner methods and costs, buffers, vacuum, logging.
// They are accepted, checked and shown as in PostgreSQL (guc.c), so that scripts
// run, and change nothing. A line is a kind, a name and a default, then
//
//	int   smallest and largest value, unit
//	real  smallest and largest value, unit
//	enum  the values
//
// A parameter of kind only would change results: it keeps its default. "-" is
// the empty string.
const tuning = `
only array_nulls on
int backend_flush_after 0 0 256 8kB
only backslash_quote safe_encoding
int client_connection_check_interval 0 0 2147483647 ms
int commit_delay 0 0 100000
int commit_siblings 5 0 1000
enum compute_query_id auto auto regress on off
enum constraint_exclusion partition partition on off
real cpu_index_tuple_cost 0.005 0 1.79769e+308
real cpu_operator_cost 0.0025 0 1.79769e+308
real cpu_tuple_cost 0.01 0 1.79769e+308
real cursor_tuple_fraction 0.1 0 1
int deadlock_timeout 1000 1 2147483647 ms
bool debug_pretty_print on
bool debug_print_parse off
bool debug_print_plan off
bool debug_print_rewritten off
int default_statistics_target 100 1 10000
only default_table_access_method heap
only default_tablespace -
only default_text_search_config pg_catalog.simple
enum default_toast_compression pglz pglz lz4
bool default_transaction_deferrable off
int effective_cache_size 524288 1 2147483647 8kB
int effective_io_concurrency 1 0 1000
bool enable_async_append on
bool enable_bitmapscan on
bool enable_gathermerge on
bool enable_hashagg on
bool enable_hashjoin on
bool enable_incremental_sort on
bool enable_indexonlyscan on
bool enable_indexscan on
bool enable_material on
bool enable_memoize on
bool enable_mergejoin on
bool enable_nestloop on
bool enable_parallel_append on
bool enable_parallel_hash on
bool enable_partition_pruning on
bool enable_partitionwise_aggregate off
bool enable_partitionwise_join off
bool enable_seqscan on
bool enable_sort on
bool enable_tidscan on
bool escape_string_warning on
enum force_parallel_mode off off on regress
int from_collapse_limit 8 1 2147483647
bool geqo on
int geqo_effort 5 1 10
int geqo_generations 0 0 2147483647
int geqo_pool_size 0 0 2147483647
real geqo_seed 0 0 1
real geqo_selection_bias 2 1.5 2
int geqo_threshold 12 2 2147483647
int gin_fuzzy_search_limit 0 0 2147483647
int gin_pending_list_limit 4096 64 2147483647 kB
real hash_mem_multiplier 2 1 1000
int idle_session_timeout 0 0 2147483647 ms
bool jit on
real jit_above_cost 100000 -1 1.79769e+308
bool jit_expressions on
real jit_inline_above_cost 500000 -1 1.79769e+308
real jit_optimize_above_cost 500000 -1 1.79769e+308
bool jit_tuple_deforming on
int join_collapse_limit 8 1 2147483647
text lc_numeric C
text lc_time C
bool log_duration off
enum log_error_verbosity default terse default verbose
bool log_executor_stats off
bool log_lock_waits off
int log_min_duration_sample -1 -1 2147483647 ms
int log_min_duration_statement -1 -1 2147483647 ms
enum log_min_error_statement error debug5 debug4 debug3 debug2 debug1 info notice warning error log fatal panic
enum log_min_messages warning debug5 debug4 debug3 debug2 debug1 info notice warning error log fatal panic
int log_parameter_max_length -1 -1 1073741823 B
int log_parameter_max_length_on_error 0 -1 1073741823 B
bool log_parser_stats off
bool log_planner_stats off
enum log_statement none none ddl mod all
real log_statement_sample_rate 1 0 1
bool log_statement_stats off
int log_temp_files -1 -1 2147483647 kB
real log_transaction_sample_rate 0 0 1
int maintenance_io_concurrency 10 0 1000
int maintenance_work_mem 65536 1024 2147483647 kB
int max_parallel_maintenance_workers 2 0 1024
int max_parallel_workers 8 0 1024
int max_parallel_workers_per_gather 2 0 1024
int max_stack_depth 2048 100 2147483647 kB
int min_parallel_index_scan_size 64 0 715827882 8kB
int min_parallel_table_scan_size 1024 0 715827882 8kB
bool parallel_leader_participation on
real parallel_setup_cost 1000 0 1.79769e+308
real parallel_tuple_cost 0.1 0 1.79769e+308
enum password_encryption scram-sha-256 md5 scram-sha-256
enum plan_cache_mode auto auto force_generic_plan force_custom_plan
only quote_all_identifiers off
real random_page_cost 4 0 1.79769e+308
real recursive_worktable_factor 10 0.001 1e+06
real seq_page_cost 1 0 1.79769e+308
only session_replication_role origin
enum stats_fetch_consistency cache none cache snapshot
enum synchronous_commit on local remote_write remote_apply on off
int tcp_keepalives_count 0 0 2147483647
int tcp_keepalives_idle 0 0 2147483647 s
int tcp_keepalives_interval 0 0 2147483647 s
int tcp_user_timeout 0 0 2147483647 ms
int temp_buffers 1024 100 1073741823 8kB
only temp_tablespaces -
only timezone_abbreviations Default
bool trace_notify off
bool track_activities on
bool track_counts on
enum track_functions none none pl all
bool track_io_timing off
bool track_wal_io_timing off
bool transaction_deferrable off
only transform_null_equals off
real vacuum_cost_delay 0 0 100 ms
int vacuum_cost_limit 200 1 10000
int vacuum_cost_page_dirty 20 0 10000
int vacuum_cost_page_hit 1 0 10000
int vacuum_cost_page_miss 2 0 10000
int vacuum_failsafe_age 1600000000 0 2100000000
int vacuum_freeze_min_age 50000000 0 1000000000
int vacuum_freeze_table_age 150000000 0 2000000000
int vacuum_multixact_failsafe_age 1600000000 0 2100000000
int vacuum_multixact_freeze_min_age 5000000 0 1000000000
int vacuum_multixact_freeze_table_age 150000000 0 2000000000
int work_mem 4096 64 2147483647 kB
enum xmlbinary base64 base64 hex
`

// tuningSettings reads the table; what known has already means something here.
func tuningSettings() []setting {
	var list []setting
	for _, line := range strings.Split(strings.TrimSpace(tuning), "\n") {
		d := tuningSetting(strings.Fields(line))
		if !slices.ContainsFunc(known, func(k setting) bool { return strings.EqualFold(k.name, d.name) }) {
			list = append(list, d)
		}
	}
	return list
}

func tuningSetting(f []string) setting {
	d := setting{name: f[1], value: strings.TrimPrefix(f[2], "-")}
	switch name := d.name; f[0] {
	case "bool":
		d.check = func(_ *Session, v string) (string, error) { return boolSetting(name, v) }
	case "int", "real":
		n := numberSetting{name: name, integer: f[0] == "int", low: mustFloat(f[3]), high: mustFloat(f[4])}
		if len(f) > 5 {
			n.setUnit(f[5])
		}
		d.value = n.text(mustFloat(f[2]))
		d.check = func(_ *Session, v string) (string, error) { return n.check(v) }
	case "enum":
		d.check = func(_ *Session, v string) (string, error) { return enumSetting(name, v, f[3:]) }
	case "only":
		only := d.value
		d.check = func(_ *Session, v string) (string, error) {
			if !strings.EqualFold(v, only) {
				return "", pgerr.NotBuilt("parameter \"%s\" with another value than \"%s\" is not supported", name, only)
			}
			return only, nil
		}
	}
	return d
}

// mustFloat reads a number of the table.
func mustFloat(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("settings table: %v", err))
	}
	return v
}

// boolSetting reads a boolean by a prefix of its words (parse_bool).
func boolSetting(name, v string) (string, error) {
	w := strings.ToLower(v)
	prefix := func(of string, least int) bool { return len(w) >= least && strings.HasPrefix(of, w) }
	switch {
	case prefix("true", 1), prefix("yes", 1), prefix("on", 2), w == "1":
		return "on", nil
	case prefix("false", 1), prefix("no", 1), prefix("off", 2), w == "0":
		return "off", nil
	}
	return "", pgerr.New(pgerr.InvalidParameterValue, "parameter \"%s\" requires a Boolean value", name)
}

func enumSetting(name, v string, values []string) (string, error) {
	for _, w := range values {
		if strings.EqualFold(v, w) {
			return w, nil
		}
	}
	if b, err := boolSetting(name, v); err == nil && slices.Contains(values, b) {
		return b, nil // on and off have other spellings here, too
	}
	return "", invalidValue(name, v).(*pgerr.Error).WithHint("Available values: %s.", strings.Join(values, ", "))
}

// numberSetting is a parameter with a numeric value, counted in a unit.
type numberSetting struct {
	name      string
	integer   bool
	low, high float64
	unit      string       // of the bounds: kB, ms ...; "" for a plain number
	factor    float64      // how much one unit is in the smallest of its kind
	units     []tuningUnit // those that a value may have, the largest first
}

type tuningUnit struct {
	name string
	size float64 // in the smallest one
}

// The units of guc.c: bytes and microseconds are the smallest.
var (
	tuningMemory = []tuningUnit{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"kB", 1 << 10}, {"B", 1}}
	tuningTime   = []tuningUnit{{"d", 86400e6}, {"h", 3600e6}, {"min", 60e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1}}
)

func (n *numberSetting) setUnit(name string) {
	n.unit = name
	if name == "8kB" {
		n.factor, n.units = 8<<10, tuningMemory
		return
	}
	for _, units := range [][]tuningUnit{tuningMemory, tuningTime} {
		for _, u := range units {
			if u.name == name {
				n.factor, n.units = u.size, units
			}
		}
	}
}

func (n *numberSetting) check(v string) (string, error) {
	digits, u := v, ""
	if i := strings.LastIndexAny(v, "0123456789.") + 1; i > 0 {
		digits, u = v[:i], strings.TrimSpace(v[i:])
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || math.IsNaN(f) {
		return "", invalidValue(n.name, v)
	}
	if u != "" {
		size, ok := n.size(u)
		if !ok {
			return "", n.badUnit(v)
		}
		f = f * size / n.factor
	}
	if n.integer {
		f = math.RoundToEven(f)
	}
	if f < n.low || f > n.high {
		unit := n.unit
		if unit != "" {
			unit = " " + unit
		}
		return "", pgerr.New(pgerr.InvalidParameterValue, "%s%s is outside the valid range for parameter \"%s\" (%s .. %s)",
			n.plain(f), unit, n.name, n.plain(n.low), n.plain(n.high))
	}
	return n.text(f), nil
}

func (n *numberSetting) size(unit string) (float64, bool) {
	for _, u := range n.units {
		if u.name == unit {
			return u.size, true
		}
	}
	return 0, false
}

func (n *numberSetting) badUnit(v string) error {
	e := invalidValue(n.name, v).(*pgerr.Error)
	switch {
	case len(n.units) == len(tuningMemory):
		return e.WithHint("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".")
	case len(n.units) == len(tuningTime):
		return e.WithHint("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".")
	}
	return e
}

// text shows a value in the largest unit in which it is a whole number.
func (n *numberSetting) text(f float64) string {
	if f <= 0 || n.units == nil {
		return n.plain(f)
	}
	for _, u := range n.units {
		if v := f * n.factor / u.size; v == math.Trunc(v) {
			return n.plain(v) + u.name
		}
	}
	return n.plain(f) + n.unit
}

func (n *numberSetting) plain(f float64) string {
	if n.integer {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
