package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// tally is what came of the records of scripts.
type tally struct{ passed, failed, skipped int }

func (t *tally) add(o tally) {
	t.passed += o.passed
	t.failed += o.failed
	t.skipped += o.skipped
}

// runner runs one script.
type runner struct {
	db     *database
	limit  int               // hash-threshold
	labels map[string]string // the hash of the first result of each label
}

// runFile runs a script on a new database and reports each record that fails.
func runFile(path string, report func(line int, why string)) (t tally, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return t, err
	}
	records, err := parseScript(string(text))
	if err != nil {
		return t, err
	}
	db, err := openDatabase()
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	r := &runner{db: db, labels: map[string]string{}}
	for _, rec := range records {
		switch {
		case rec.skip:
			t.skipped++
		case rec.kind == halt:
			return t, nil
		case rec.kind == threshold:
			r.limit = rec.limit
		default:
			if why := r.record(rec); why != "" {
				t.failed++
				report(rec.line, why)
			} else {
				t.passed++
			}
		}
	}
	return t, nil
}

// record runs a statement or query and says what is wrong with its answer.
func (r *runner) record(rec *record) string {
	columns, rows, err := r.db.run(rec.sql)
	if err != nil {
		e, ok := pgerr.From(err)
		switch {
		case !ok || errors.Is(err, errPanic):
			return fmt.Sprintf("%s\nfault: %v", rec.sql, err)
		case rec.fails:
			return ""
		}
		return fmt.Sprintf("%s\nERROR %s: %s", rec.sql, e.Code, e.Message)
	}
	switch {
	case rec.fails:
		return rec.sql + "\nno error"
	case rec.kind == statement:
		return ""
	case columns != len(rec.types):
		return fmt.Sprintf("%s\n%d columns instead of %d", rec.sql, columns, len(rec.types))
	}
	return r.compare(rec, rows)
}

func (r *runner) compare(rec *record, rows [][]value) string {
	shown := make([][]string, len(rows))
	for i, row := range rows {
		for j, v := range row {
			shown[i] = append(shown[i], show(v, rec.types[j]))
		}
	}
	values := arrange(shown, rec.sort)
	if rec.label != "" {
		hash := hashed(values)
		if before, ok := r.labels[rec.label]; ok && before != hash {
			return fmt.Sprintf("%s\n%s, but label %s had %s", rec.sql, hash, rec.label, before)
		}
		r.labels[rec.label] = hash
	}
	if rec.checked && !matches(values, rec.expected) {
		return fmt.Sprintf("%s\n---- got\n%s\n---- expected\n%s", rec.sql, result(values, r.limit), result(rec.expected, 0))
	}
	return ""
}
