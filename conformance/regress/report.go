package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/conformance/wire"
)

// tally counts the statements of a file.
type tally struct {
	file          string
	n             [classes]int
	order, extras int
}

func (t *tally) add(o *outcome) {
	t.n[o.class]++
	if o.class == equal && o.order {
		t.order++
	}
	if o.class == equal && o.extras {
		t.extras++
	}
}

// judged is how many statements count.
func (t *tally) judged() int {
	return t.n[equal] + t.n[declared] + t.n[differs] + t.n[refused]
}

func (t *tally) sum(o *tally) {
	for i := range t.n {
		t.n[i] += o.n[i]
	}
	t.order += o.order
	t.extras += o.extras
}

func tallies(outcomes []*outcome) (files []*tally, total tally) {
	for _, o := range outcomes {
		if len(files) == 0 || files[len(files)-1].file != o.file {
			files = append(files, &tally{file: o.file})
		}
		files[len(files)-1].add(o)
	}
	for _, f := range files {
		total.sum(f)
	}
	return files, total
}

func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*float64(part)/float64(whole))
}

// run is what a report says about a run besides its outcomes.
type run struct {
	version  string // of PostgreSQL
	commit   string // of the node
	commands map[string]int
	crashes  int
}

const (
	topReasons = 60
	topDeclare = 60
)

// writeReport writes the part of RESULTS.md about the regression tests.
func writeReport(out io.Writer, outcomes []*outcome, about *run) error {
	w := bufio.NewWriter(out)
	files, total := tallies(outcomes)
	fmt.Fprintf(w, "# Results of `make conformance`\n\n")
	fmt.Fprintf(w, "This file is written by `go run ./conformance/regress`. How statements are compared and what the\n"+
		"classes mean is in `conformance/regress/doc.go`, the reasons of declared differences in `conformance/declared.txt`.\n\n")
	fmt.Fprintf(w, "## PostgreSQL's regression tests\n\n")
	fmt.Fprintf(w, "Reference: PostgreSQL %s in the same run, statement by statement. The node is of commit %s.\n\n", about.version, about.commit)
	judged := total.judged()
	fmt.Fprintf(w, "- %d statements judged; **%d equal (%s %%)**, **%d equal or declared (%s %%)**\n", judged,
		total.n[equal], percent(total.n[equal], judged),
		total.n[equal]+total.n[declared], percent(total.n[equal]+total.n[declared], judged))
	fmt.Fprintf(w, "- %d declared, %d with another answer, %d refused with an error; %d excluded (functions in C)\n",
		total.n[declared], total.n[differs], total.n[refused], total.n[excluded])
	fmt.Fprintf(w, "- of the equal ones, %d without ORDER BY gave the rows in another order, %d errors differ in DETAIL, HINT or position\n",
		total.order, total.extras)
	fmt.Fprintf(w, "- the node ended unexpectedly: %d times; psql commands not run: %s\n\n", about.crashes, commandList(about.commands))
	fmt.Fprintf(w, "| file | judged | equal | %% | declared | differs | error | equal or declared %% | excluded |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	total.file = "**all**"
	for _, f := range append(files, &total) {
		j := f.judged()
		fmt.Fprintf(w, "| %s | %d | %d | %s | %d | %d | %d | %s | %d |\n", f.file, j, f.n[equal], percent(f.n[equal], j),
			f.n[declared], f.n[differs], f.n[refused], percent(f.n[equal]+f.n[declared], j), f.n[excluded])
	}
	fmt.Fprintf(w, "\n### Most frequent reasons of differences and errors\n\n"+
		"`n` statements; `after` are further ones that differ because of objects or transactions which those left behind.\n\n"+
		"| n | after | class | reason | first |\n|--:|--:|---|---|---|\n")
	for _, c := range first(clusters(outcomes), topReasons) {
		fmt.Fprintf(w, "| %d | %d | %s | %s | %s:%d |\n", c.own, c.after, c.class, cell(c.reason), c.example.file, c.example.line)
	}
	fmt.Fprintf(w, "\n### Declared differences\n\n| n | reason |\n|--:|---|\n")
	for _, d := range first(declaredCounts(outcomes), topDeclare) {
		fmt.Fprintf(w, "| %d | %s |\n", d.n, cell(d.reason))
	}
	return w.Flush()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }

func commandList(commands map[string]int) string {
	total, parts := 0, []string{}
	for _, c := range slices.Sorted(maps.Keys(commands)) {
		total += commands[c]
		parts = append(parts, fmt.Sprintf(`\%s %d`, c, commands[c]))
	}
	return fmt.Sprintf("%d (%s)", total, strings.Join(parts, ", "))
}

// cluster is the statements that differ for the same reason.
type cluster struct {
	class      class
	reason     string
	own, after int
	example    *outcome
	examples   []*outcome
}

// clusters groups what differs by its reason, the most frequent first.
func clusters(outcomes []*outcome) []*cluster {
	by := map[string]*cluster{}
	var list []*cluster
	get := func(o *outcome) *cluster {
		key := o.class.String() + o.reason
		c := by[key]
		if c == nil {
			c = &cluster{class: o.class, reason: o.reason, example: o}
			by[key] = c
			list = append(list, c)
		}
		return c
	}
	for _, o := range outcomes {
		if o.class != differs && o.class != refused {
			continue
		}
		if o.cause != nil && (o.cause.class == differs || o.cause.class == refused) {
			get(o.cause).after++
			continue
		}
		c := get(o)
		c.own++
		c.examples = append(c.examples, o)
	}
	slices.SortStableFunc(list, func(a, b *cluster) int { return cmp.Compare(b.own+b.after, a.own+a.after) })
	return list
}

type declaredCount struct {
	reason string
	n      int
}

func declaredCounts(outcomes []*outcome) []declaredCount {
	by := map[string]int{}
	for _, o := range outcomes {
		if o.class == declared {
			by[o.why]++
		}
	}
	var list []declaredCount
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		list = append(list, declaredCount{reason, by[reason]})
	}
	slices.SortStableFunc(list, func(a, b declaredCount) int { return cmp.Compare(b.n, a.n) })
	return list
}

// writeDetails lists every statement that is not equal, with both answers.
func writeDetails(out io.Writer, outcomes []*outcome) error {
	w := bufio.NewWriter(out)
	for _, o := range outcomes {
		if o.class == equal {
			continue
		}
		fmt.Fprintf(w, "=== %s:%d %s", o.file, o.line, o.class)
		if o.reason != "" {
			fmt.Fprintf(w, " | %s", o.reason)
		}
		if o.why != "" {
			fmt.Fprintf(w, " | %s", o.why)
		}
		if o.cause != nil {
			fmt.Fprintf(w, " | after %s:%d", o.cause.file, o.cause.line)
		}
		fmt.Fprintf(w, "\n%s;\n--- node\n%s--- PostgreSQL\n%s\n", o.text, answerText(&o.got), answerText(&o.want))
	}
	return w.Flush()
}

const rowsShown = 60

func answerText(a *wire.Answer) string {
	var b strings.Builder
	for _, n := range a.Notices {
		fmt.Fprintf(&b, "%s:  %s\n", n.Severity, n.Text)
	}
	for _, r := range a.Results {
		if r.Columns != nil {
			for _, c := range r.Columns {
				fmt.Fprintf(&b, "%s:%d|", c.Name, c.Type)
			}
			b.WriteByte('\n')
		}
		for i, row := range r.Rows {
			if i == rowsShown {
				fmt.Fprintf(&b, "... %d rows\n", len(r.Rows))
				break
			}
			for _, v := range row {
				if v.Null {
					v.Text = "NULL"
				}
				b.WriteString(v.Text + "|")
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s%s\n", r.Out, r.Tag)
	}
	if e := a.Err; e != nil {
		fmt.Fprintf(&b, "%s %s: %s\n", e.Severity, e.Code, e.Text)
		if e.Detail != "" || e.Hint != "" || e.Position != 0 {
			fmt.Fprintf(&b, "  detail %q hint %q position %d\n", e.Detail, e.Hint, e.Position)
		}
	}
	return b.String()
}

const examplesShown = 6

// writeClusters lists all reasons, with some statements of each.
func writeClusters(out io.Writer, outcomes []*outcome) error {
	w := bufio.NewWriter(out)
	for _, c := range clusters(outcomes) {
		fmt.Fprintf(w, "=== %d + %d %s | %s\n", c.own, c.after, c.class, c.reason)
		for _, o := range first(c.examples, examplesShown) {
			fmt.Fprintf(w, "  %s:%d  %s\n", o.file, o.line, strings.Join(strings.Fields(o.text), " "))
		}
	}
	return w.Flush()
}
