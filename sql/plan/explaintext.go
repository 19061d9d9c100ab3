package plan

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Actual is what EXPLAIN ANALYZE measured at a node: times in milliseconds,
// rows of all loops together.
type Actual struct {
	Loops, Rows    int64
	Startup, Total float64
}

// ExplainOptions say what an explanation shows.
type ExplainOptions struct {
	// Actual gives the measurements of a node; nil without ANALYZE.
	Actual func(n Node) Actual
	// Timing shows times beside the rows.
	Timing bool
}

// perLoop are the figures as PostgreSQL shows them: averages over the loops.
func (a Actual) perLoop() (rows, startup, total float64) {
	if a.Loops == 0 {
		return 0, 0, 0
	}
	n := float64(a.Loops)
	return float64(a.Rows) / n, a.Startup / n, a.Total / n
}

// Text writes the explanation as lines, indented as PostgreSQL does.
func (x *ExplainNode) Text(o ExplainOptions) []string {
	var out []string
	x.text(&out, 0, o)
	return out
}

func (x *ExplainNode) text(out *[]string, indent int, o ExplainOptions) {
	pad := strings.Repeat(" ", indent)
	if x.Role != "" {
		*out = append(*out, pad+x.Role)
		indent += 2
		pad = strings.Repeat(" ", indent)
	}
	arrow, inner := "", indent+2
	if indent > 0 {
		arrow, inner = "->  ", indent+6
	}
	*out = append(*out, pad+arrow+x.Title+x.actual(o))
	for _, p := range x.Properties {
		if p.Hidden {
			continue
		}
		*out = append(*out, strings.Repeat(" ", inner)+p.Name+": "+strings.Join(p.Values, ", "))
	}
	for _, c := range x.Children {
		c.text(out, inner, o)
	}
}

func (x *ExplainNode) actual(o ExplainOptions) string {
	if o.Actual == nil || x.Node == nil {
		return ""
	}
	a := o.Actual(x.Node)
	if a.Loops == 0 {
		return " (never executed)"
	}
	rows, startup, total := a.perLoop()
	if o.Timing {
		return fmt.Sprintf(" (actual time=%.3f..%.3f rows=%.0f loops=%d)", startup, total, rows, a.Loops)
	}
	return fmt.Sprintf(" (actual rows=%.0f loops=%d)", rows, a.Loops)
}

// JSON writes the object that stands under "Plan" in PostgreSQL's JSON format,
// indented by two spaces a level, from the level that indent says.
func (x *ExplainNode) JSON(o ExplainOptions, indent int) string {
	w := jsonWriter{}
	x.json(&w, o, indent, "")
	return w.b.String()
}

type jsonWriter struct{ b strings.Builder }

// field begins a member of an object.
func (w *jsonWriter) field(first *bool, indent int, name string) {
	if !*first {
		w.b.WriteByte(',')
	}
	*first = false
	w.b.WriteString("\n" + strings.Repeat("  ", indent))
	w.b.WriteString(jsonString(name) + ": ")
}

func jsonString(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// relationOf is PostgreSQL's "Parent Relationship".
func relationOf(role string, place int) string {
	switch {
	case strings.HasPrefix(role, "InitPlan"), strings.HasPrefix(role, "CTE"):
		return "InitPlan"
	case role != "":
		return "SubPlan"
	case place == 0:
		return "Outer"
	}
	return "Inner"
}

func (x *ExplainNode) json(w *jsonWriter, o ExplainOptions, indent int, relation string) {
	w.b.WriteByte('{')
	first := true
	text := func(name, value string) {
		w.field(&first, indent+1, name)
		w.b.WriteString(jsonString(value))
	}
	text("Node Type", x.Kind)
	if relation != "" {
		text("Parent Relationship", relation)
	}
	if x.Role != "" {
		text("Subplan Name", x.Role)
	}
	for _, p := range x.Properties {
		if !p.List {
			text(p.Name, p.Values[0])
			continue
		}
		w.field(&first, indent+1, p.Name)
		quoted := make([]string, len(p.Values))
		for i, v := range p.Values {
			quoted[i] = jsonString(v)
		}
		w.b.WriteString("[" + strings.Join(quoted, ", ") + "]")
	}
	if o.Actual != nil && x.Node != nil {
		x.jsonActual(w, o, &first, indent+1)
	}
	if len(x.Children) > 0 {
		w.field(&first, indent+1, "Plans")
		w.b.WriteByte('[')
		place := 0
		for i, c := range x.Children {
			if i > 0 {
				w.b.WriteByte(',')
			}
			w.b.WriteString("\n" + strings.Repeat("  ", indent+2))
			c.json(w, o, indent+2, relationOf(c.Role, place))
			if c.Role == "" {
				place++
			}
		}
		w.b.WriteString("\n" + strings.Repeat("  ", indent+1) + "]")
	}
	w.b.WriteString("\n" + strings.Repeat("  ", indent) + "}")
}

func (x *ExplainNode) jsonActual(w *jsonWriter, o ExplainOptions, first *bool, indent int) {
	a := o.Actual(x.Node)
	rows, startup, total := a.perLoop()
	if o.Timing {
		w.field(first, indent, "Actual Startup Time")
		fmt.Fprintf(&w.b, "%.3f", startup)
		w.field(first, indent, "Actual Total Time")
		fmt.Fprintf(&w.b, "%.3f", total)
	}
	w.field(first, indent, "Actual Rows")
	fmt.Fprintf(&w.b, "%.0f", rows)
	w.field(first, indent, "Actual Loops")
	fmt.Fprintf(&w.b, "%d", a.Loops)
}
