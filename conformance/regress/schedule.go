package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// prerequisites make objects that counted scripts use. They are run, and not
// counted: their own subject is mostly what needs functions in C.
var prerequisites = strings.Fields("test_setup create_misc create_type create_aggregate create_operator")

// counted are the scripts whose statements are counted.
var counted = strings.Fields(`
	boolean char name varchar text int2 int4 int8 oid float4 float8 bit numeric uuid enum money rangetypes domain
	strings numerology date time timetz timestamp timestamptz interval horology regex
	select select_into select_distinct select_distinct_on select_implicit select_having subselect union case join
	aggregates window with insert insert_conflict update delete returning limit groupingsets tablesample
	arrays json jsonb json_encoding jsonpath jsonb_jsonpath rowtypes polymorphism
	create_table create_index create_view updatable_views matview constraints foreign_key generated identity sequence
	truncate alter_table triggers rowsecurity privileges merge
	copy copy2 transactions portals prepare temp plancache plpgsql create_function_sql create_procedure`)

// schedule lists the scripts to run, in the order of PostgreSQL's own schedule,
// which brings every table before those who use it. With only, no others than
// those and the prerequisites.
func schedule(regress string, only []string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(regress, "parallel_schedule"))
	if err != nil {
		return nil, err
	}
	wanted := counted
	if len(only) > 0 {
		wanted = only
	}
	var files []string
	for _, line := range strings.Split(string(data), "\n") {
		tests, ok := strings.CutPrefix(line, "test:")
		if !ok {
			continue
		}
		for _, f := range strings.Fields(tests) {
			if slices.Contains(wanted, f) || slices.Contains(prerequisites, f) {
				files = append(files, f)
			}
		}
	}
	for _, f := range wanted {
		if !slices.Contains(files, f) {
			return nil, fmt.Errorf("the schedule of PostgreSQL's tests has no %s", f)
		}
	}
	return files, nil
}
