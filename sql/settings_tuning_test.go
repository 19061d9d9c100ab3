package sql

import (
	"errors"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// TestTuningSettings: values and errors as PostgreSQL 15 shows them.
func TestTuningSettings(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"maintenance_work_mem", "", "64MB"},
		{"maintenance_work_mem", "10MB", "10MB"},
		{"maintenance_work_mem", "1500kB", "1500kB"},
		{"maintenance_work_mem", "1.5GB", "1536MB"},
		{"maintenance_work_mem", "10", `10 kB is outside the valid range for parameter "maintenance_work_mem" (1024 .. 2147483647)`},
		{"maintenance_work_mem", "10 xB", `invalid value for parameter "maintenance_work_mem": "10 xB" Valid units for this parameter are "B", "kB", "MB", "GB", and "TB".`},
		{"maintenance_work_mem", "abc", `invalid value for parameter "maintenance_work_mem": "abc"`},
		{"enable_seqscan", "of", "off"},
		{"enable_seqscan", "o", `parameter "enable_seqscan" requires a Boolean value`},
		{"geqo_seed", "2", `2 is outside the valid range for parameter "geqo_seed" (0 .. 1)`},
		{"plan_cache_mode", "Force_generic_plan", "force_generic_plan"},
		{"plan_cache_mode", "x", `invalid value for parameter "plan_cache_mode": "x" Available values: auto, force_generic_plan, force_custom_plan.`},
		{"constraint_exclusion", "true", "on"},
		{"vacuum_cost_delay", "5ms", "5ms"},
		{"vacuum_cost_delay", "1s", `1000 ms is outside the valid range for parameter "vacuum_cost_delay" (0 .. 100)`},
		{"cpu_operator_cost", "1e10", "1e+10"},
		{"effective_cache_size", "", "4GB"},
		{"deadlock_timeout", "", "1s"},
		{"temp_buffers", "10", `10 8kB is outside the valid range for parameter "temp_buffers" (100 .. 1073741823)`},
		{"transform_null_equals", "off", "off"},
		{"transform_null_equals", "on", `parameter "transform_null_equals" with another value than "off" is not supported Tallystick does not have this part of PostgreSQL yet.`},
	} {
		d := findSetting(strings.ToUpper(c.name))
		if d == nil {
			t.Errorf("%s is unknown", c.name)
			continue
		}
		got, err := d.value, error(nil)
		if c.value != "" {
			got, err = d.check(nil, c.value)
		}
		var e *pgerr.Error
		if errors.As(err, &e) {
			got = strings.TrimSpace(e.Message + " " + e.Hint)
		}
		if got != c.want {
			t.Errorf("%s = %q: %s, want %s", c.name, c.value, got, c.want)
		}
	}
}

// TestDefaultsPassTheirChecks: RESET relies on it.
func TestDefaultsPassTheirChecks(t *testing.T) {
	for _, d := range tuningSettings() {
		if d.check == nil {
			continue
		}
		if v, err := d.check(nil, d.value); err != nil || v != d.value {
			t.Errorf("%s: %q becomes %q, %v", d.name, d.value, v, err)
		}
	}
}
