package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/server"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func newTest() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test FILE.sql...",
		Short: "Run the tests of contracts on a network in memory",
		Long: `Run SQL scripts on a network in memory that is thrown away: blocks, signatures and
the deployment of contracts are the real ones. The files share the network and run
in the order given.

Consecutive definitions (CREATE, ALTER, DROP) are deployed as one script, by
approval. Every other statement runs by itself, and succeeds unless a comment in
front of it says what is to come of it:

  -- as: alice                       from here on, users sign: admin, alice, bob
  -- expect: 70                      the rows, one such comment each, columns
  -- expect: a | 50                  separated by |; NULL stands for null
  -- expect: no rows
  -- expect error: P0001 not enough  SQLSTATE and, if given, a part of the message

An assertion is a function that ends in ASSERT or RAISE EXCEPTION when something is
wrong: SELECT check_totals(); fails with it. A call of a contract is a transaction,
so it stands alone; SELECT on tables may be any query.

Printed is a line for each deployment and statement, and what differs. The exit
code is 1 if anything failed.`,
		Example: "  tallystick test bank.sql bank_test.sql",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := runTests(cmd.Context(), args)
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
				err = fmt.Errorf("%d of %d failed", report.Failed, len(report.Steps))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// testReport is what test prints; the names are for scripts and stay.
type testReport struct {
	OK     bool       `json:"ok"`
	Failed int        `json:"failed"`
	Steps  []testStep `json:"steps"`
}

// testStep is a deployment or a statement.
type testStep struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	User     string   `json:"user"`
	SQL      string   `json:"sql"`
	OK       bool     `json:"ok"`
	Expected []string `json:"expected,omitempty"`
	Rows     []string `json:"rows,omitempty"`
	Error    string   `json:"error,omitempty"` // SQLSTATE and message
	Detail   string   `json:"detail,omitempty"`
	Notices  []string `json:"notices,omitempty"`
}

// tester runs scripts on one network.
type tester struct {
	network  *server.Scratch
	sessions map[string]*sql.Session
	notices  []string
	report   testReport
}

func runTests(ctx context.Context, files []string) (report *testReport, err error) {
	network, err := server.OpenScratch()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	t := &tester{network: network, sessions: map[string]*sql.Session{}, report: testReport{OK: true, Steps: []testStep{}}}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := t.file(ctx, file, string(raw)); err != nil {
			return nil, err
		}
	}
	return &t.report, nil
}

func (t *tester) session(user string) *sql.Session {
	s := t.sessions[user]
	if s == nil {
		s = t.network.Session(user, func(severity string, e *pgerr.Error) {
			if e.Code != pgerr.SuccessfulCompletion || severity == "NOTICE" {
				t.notices = append(t.notices, severity+": "+e.Message)
			}
		})
		t.sessions[user] = s
	}
	return s
}

// file runs a script. Its error is a fault, or that the script cannot be read.
func (t *tester) file(ctx context.Context, file, text string) error {
	list, err := parse.Statements(text)
	if err != nil {
		if e, ok := pgerr.From(err); ok {
			line, column := lineColumn(text, byteOffset(text, e.Position))
			return fmt.Errorf("%s:%d:%d: %w", file, line, column, err)
		}
		return err
	}
	user := server.DevAdmin
	for i := 0; i < len(list); i++ {
		step, want, err := t.step(file, text, &list[i], &user)
		if err != nil {
			return err
		}
		if sql.CheckScript(step.SQL) == nil {
			end := i
			for end+1 < len(list) && want == nil && sql.CheckScript(list[end+1].Text) == nil && !commented(list[end+1].Text) {
				end++
			}
			script := text[list[i].Offset : list[end].Offset+len(list[end].Text)]
			step.User = server.DevAdmin
			t.deploy(ctx, &step, want, script, end-i+1)
			i = end
			continue
		}
		t.run(ctx, &step, want)
	}
	return nil
}

// expectation is what comments say of a statement.
type expectation struct {
	rows    []string
	noRows  bool
	isError bool
	code    string
	message string
}

// commented tells that comments in front of a statement speak to the tester.
func commented(text string) bool {
	for line := range strings.Lines(text) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "--")
		if !ok {
			if line != "" {
				return false
			}
			continue
		}
		word, _, found := strings.Cut(strings.TrimSpace(line), ":")
		if found && (word == "as" || word == "expect" || word == "expect error") {
			return true
		}
	}
	return false
}

// step reads the comments in front of a statement.
func (t *tester) step(file, text string, st *parse.Statement, user *string) (testStep, *expectation, error) {
	var want *expectation
	rest := st.Text
	for strings.HasPrefix(rest, "--") {
		comment, after, _ := strings.Cut(rest, "\n")
		rest = strings.TrimLeft(after, " \t\r\n")
		word, value, found := strings.Cut(strings.TrimSpace(strings.TrimPrefix(comment, "--")), ":")
		value = strings.TrimSpace(value)
		if !found {
			continue
		}
		if want == nil && strings.HasPrefix(word, "expect") {
			want = &expectation{}
		}
		switch word {
		case "as":
			*user = value
			if !slices.Contains(t.network.Users(), value) {
				line, _ := lineColumn(text, st.Offset)
				return testStep{}, nil, fmt.Errorf("%s:%d: there is no user %q; there are %s", file, line, value, strings.Join(t.network.Users(), ", "))
			}
		case "expect":
			if value == "no rows" {
				want.noRows = true
			} else {
				want.rows = append(want.rows, normalize(value))
			}
		case "expect error":
			want.isError = true
			want.code, want.message, _ = strings.Cut(value, " ")
			want.message = strings.TrimSpace(want.message)
		}
	}
	line, _ := lineColumn(text, st.Offset+len(st.Text)-len(rest))
	return testStep{File: file, Line: line, User: *user, SQL: rest}, want, nil
}

// normalize removes the space around the columns of an expected row.
func normalize(row string) string {
	columns := strings.Split(row, "|")
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	return strings.Join(columns, "|")
}

// deploy has definitions proposed, approved and deployed.
func (t *tester) deploy(ctx context.Context, step *testStep, want *expectation, script string, n int) {
	if n > 1 {
		step.SQL = fmt.Sprintf("deployment of %d definitions", n)
	}
	t.notices = nil
	err := t.session(server.DevAdmin).Deploy(ctx, script)
	t.judge(step, want, nil, err)
}

// run runs one statement.
func (t *tester) run(ctx context.Context, step *testStep, want *expectation) {
	t.notices = nil
	rows, err := execute(ctx, t.session(step.User), step.SQL)
	t.judge(step, want, rows, err)
}

// execute runs a statement and returns its rows as text.
func execute(ctx context.Context, s *sql.Session, text string) ([]string, error) {
	st, err := parse.One(text)
	if err != nil {
		return nil, err
	}
	p, err := s.Prepare(ctx, "", st, nil)
	if err != nil {
		s.Fail(err)
		return nil, err
	}
	portal, err := s.Bind(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	defer portal.Close()
	var out []string
	for {
		row, err := portal.Next(ctx)
		if err != nil {
			s.Fail(err)
			return nil, err
		}
		if row == nil {
			return out, nil
		}
		var b []byte
		for i, d := range row {
			if i > 0 {
				b = append(b, '|')
			}
			if d.IsNull() {
				b = append(b, "NULL"...)
			} else {
				b = portal.Columns()[i].Type.Append(b, d, s.Format())
			}
		}
		out = append(out, string(b))
	}
}

// judge compares what came of a step with what was expected of it.
func (t *tester) judge(step *testStep, want *expectation, rows []string, err error) {
	step.Rows, step.Notices, step.OK = rows, t.notices, true
	if err != nil {
		step.Error = fmt.Sprintf("%s %v", pgerr.CodeOf(err), err)
		if e, ok := pgerr.From(err); ok {
			step.Error, step.Detail = fmt.Sprintf("%s %s", e.Code, e.Message), e.Detail
		}
	}
	switch {
	case want != nil && want.isError:
		step.Expected = []string{strings.TrimSpace("error " + want.code + " " + want.message)}
		step.OK = err != nil && string(pgerr.CodeOf(err)) == want.code && strings.Contains(step.Error, want.message)
	case err != nil:
		step.OK = false
		if want != nil {
			step.Expected = want.rows
		}
	case want != nil:
		step.Expected = want.rows
		if want.noRows {
			step.Expected = []string{"no rows"}
		}
		step.OK = len(rows) == len(want.rows)
		for i := 0; step.OK && i < len(rows); i++ {
			step.OK = normalize(rows[i]) == want.rows[i]
		}
	}
	if !step.OK {
		t.report.OK = false
		t.report.Failed++
	}
	t.report.Steps = append(t.report.Steps, *step)
}

func (r *testReport) print(w io.Writer) error {
	var b strings.Builder
	place, user := 0, 0 // widths of the columns
	for i := range r.Steps {
		place, user = max(place, len(r.Steps[i].place())), max(user, len(r.Steps[i].User))
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		verdict := "ok"
		if !s.OK {
			verdict = "FAIL"
		}
		fmt.Fprintf(&b, "%-4s  %-*s  %-*s  %s\n", verdict, place, s.place(), user, s.User, parse.Clip(firstLine(s.SQL)))
		if !s.OK {
			s.printDifference(&b)
		}
	}
	fmt.Fprintf(&b, "%d steps, %d failed\n", len(r.Steps), r.Failed)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *testStep) place() string { return fmt.Sprintf("%s:%d", s.File, s.Line) }

// printDifference shows what was expected and what came.
func (s *testStep) printDifference(b *strings.Builder) {
	for _, e := range s.Expected {
		fmt.Fprintf(b, "      expected  %s\n", e)
	}
	for _, row := range s.Rows {
		fmt.Fprintf(b, "      got       %s\n", row)
	}
	switch {
	case s.Error != "":
		fmt.Fprintf(b, "      got       error %s\n", s.Error)
		for line := range strings.Lines(s.Detail) {
			fmt.Fprintf(b, "                %s\n", strings.TrimSuffix(line, "\n"))
		}
	case len(s.Rows) == 0:
		fmt.Fprintf(b, "      got       no rows\n")
	}
}

// firstLine is the text up to the end of its first line.
func firstLine(s string) string {
	line, more, _ := strings.Cut(s, "\n")
	if strings.TrimSpace(more) != "" {
		line += " ..."
	}
	return line
}
