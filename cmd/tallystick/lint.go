package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/server"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func newLint() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lint FILE.sql...",
		Short: "Check contracts for determinism, without a network",
		Long: `Check deployment scripts as create_deploytx and submit_deploytx do: execute their
definitions on an empty database in memory, one file after the other, and examine
every function with all that it calls. Statements that are no definitions, such as
those of a file for "tallystick test", are left out.

A contract must give the same result on every node, and its reads must be such
that conflicts can be told. So it may not

  call now(), random(), gen_random_uuid(), nextval(), current_user and their like:
    tx_time(), tx_random(), tx_uuid(), tx_id(), tx_user(), tx_org() replace them;
  read the schemas private and provenance, pg_catalog, information_schema;
  look at xmin, xmax, creator_block or deleter_block in a condition;
  take the first rows (LIMIT, OFFSET, DISTINCT ON, SELECT INTO without STRICT) or
    concatenate rows (array_agg, string_agg, ..., sums of floating point values)
    unless ORDER BY ends in a unique key of the result;
  read where no index serves the condition, read or change a whole table;
  contain DDL, temporary tables, COMMIT or ROLLBACK.

Each finding is printed as FILE:LINE:COLUMN: SEVERITY: MESSAGE [RULE], with what to
write instead on the next line. Warnings do not keep a contract from being deployed:
EXECUTE, whose text is checked when it is executed, and statements that would fail.
The exit code is 1 if there is an error.`,
		Example: "  tallystick lint schema.sql contracts.sql",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := lint(args)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				err = e.Encode(report)
			} else {
				err = report.print(cmd.OutOrStdout())
			}
			if err == nil && !report.OK {
				err = fmt.Errorf("%s cannot be deployed: errors: %d, warnings: %d", strings.Join(args, ", "), report.Errors, report.Warnings)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// lintReport is what lint prints; the names are for scripts and stay.
type lintReport struct {
	OK       bool          `json:"ok"`
	Errors   int           `json:"errors"`
	Warnings int           `json:"warnings"`
	Findings []lintFinding `json:"findings"`
}

type lintFinding struct {
	File     string `json:"file"` // empty: of a function in an earlier file
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Function string `json:"function,omitempty"`
	Severity string `json:"severity"`
	Rule     string `json:"rule"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

// lint checks files; its error is that of one that cannot be read.
func lint(files []string) (*lintReport, error) {
	l, err := server.NewLinter()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	r := &lintReport{OK: true, Findings: []lintFinding{}}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		text := string(raw)
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("%s is not encoded as UTF-8", file)
		}
		script, err := definitions(text)
		var found []server.LintFinding
		if err == nil && strings.TrimSpace(script) != "" {
			found, err = l.Check(script)
		}
		if err != nil {
			e, ok := pgerr.From(err)
			if !ok {
				return nil, err
			}
			r.broken(file, text, e)
			break // what follows builds on it
		}
		for i := range found {
			r.add(file, text, &found[i])
		}
	}
	return r, nil
}

// definitions blanks the statements of a script that are no definitions, so
// that positions in the rest stay right.
func definitions(script string) (string, error) {
	list, err := parse.Statements(script)
	if err != nil {
		return "", err
	}
	out := []byte(script)
	for _, st := range list {
		if sql.CheckScript(st.Text) == nil {
			continue
		}
		for i := st.Offset; i < st.Offset+len(st.Text); i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	return string(out), nil
}

func (r *lintReport) add(file, text string, f *server.LintFinding) {
	out := lintFinding{
		File: file, Line: f.Line, Column: f.Column, Function: f.Function,
		Severity: string(f.Severity), Rule: string(f.Rule), Message: f.Message, Hint: f.Hint,
	}
	if f.At < 0 {
		out.File = ""
		same := func(g lintFinding) bool {
			return g.Function == out.Function && g.Rule == out.Rule && g.Message == out.Message
		}
		if slices.ContainsFunc(r.Findings, same) {
			return // with its place in the earlier file
		}
	} else {
		out.Line, out.Column = lineColumn(text, f.At)
	}
	r.count(out)
}

// broken reports a script that cannot be executed.
func (r *lintReport) broken(file, text string, e *pgerr.Error) {
	f := lintFinding{File: file, Line: 1, Column: 1, Severity: "error", Rule: string(e.Code), Message: e.Message, Hint: e.Hint}
	if e.Position > 0 {
		f.Line, f.Column = lineColumn(text, byteOffset(text, e.Position))
	}
	if e.Detail != "" {
		f.Message += ": " + e.Detail
	}
	r.count(f)
}

func (r *lintReport) count(f lintFinding) {
	r.Findings = append(r.Findings, f)
	if f.Severity == "error" {
		r.OK, r.Errors = false, r.Errors+1
	} else {
		r.Warnings++
	}
}

// lineColumn is the line and column, in characters and from 1, of a byte offset.
func lineColumn(text string, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

// byteOffset is where character number pos, from 1, begins.
func byteOffset(text string, pos int) int {
	for i := range text {
		if pos--; pos <= 0 {
			return i
		}
	}
	return len(text)
}

func (r *lintReport) print(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		where := f.File
		if where == "" {
			where = f.Function
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s [%s]\n", where, f.Line, f.Column, f.Severity, f.Message, f.Rule)
		if f.Hint != "" {
			fmt.Fprintf(&b, "  %s\n", f.Hint)
		}
	}
	if r.OK {
		fmt.Fprintf(&b, "can be deployed; warnings: %d\n", r.Warnings)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
