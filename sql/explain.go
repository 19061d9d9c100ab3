package sql

import (
	"context"
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// explainOptions are those of EXPLAIN. Plans have no costs here: COSTS, like
// BUFFERS, WAL, SETTINGS and VERBOSE, is accepted and shows nothing.
type explainOptions struct {
	analyze, json   bool
	timing, summary bool
	// contract plans as for a contract, where reading a whole table is dear.
	contract bool
}

func parseExplainOptions(n *pg.ExplainStmt, script string) (explainOptions, error) {
	var o explainOptions
	timing, summary := false, false
	for _, opt := range n.Options {
		d := opt.GetDefElem()
		at := func(e *pgerr.Error) error { return locateAt(e, script, d.Location) }
		if d.Defname == "format" {
			switch word := strings.ToLower(defString(d)); word {
			case "text":
			case "json":
				o.json = true
			case "xml", "yaml":
				return o, pgerr.NotBuilt("EXPLAIN (FORMAT %s) is not supported", strings.ToUpper(word))
			default:
				return o, at(pgerr.New(pgerr.InvalidParameterValue, "unrecognized value for EXPLAIN option \"%s\": \"%s\"", d.Defname, defString(d)))
			}
			continue
		}
		on, err := defBool(d)
		if err != nil {
			return o, err
		}
		switch d.Defname {
		case "analyze":
			o.analyze = on
		case "timing":
			o.timing, timing = on, true
		case "summary":
			o.summary, summary = on, true
		case "contract":
			o.contract = on
		case "costs", "verbose", "buffers", "settings", "wal", "generic_plan", "memory":
		default:
			return o, at(pgerr.New(pgerr.SyntaxError, "unrecognized EXPLAIN option \"%s\"", d.Defname))
		}
	}
	if timing && o.timing && !o.analyze {
		return o, pgerr.New(pgerr.InvalidParameterValue, "EXPLAIN option TIMING requires ANALYZE")
	}
	if !timing {
		o.timing = o.analyze
	}
	if !summary {
		o.summary = o.analyze
	}
	return o, nil
}

// analyzeExplain plans what is to be explained, for its parameters and errors.
func (s *Session) analyzeExplain(ctx context.Context, p *Prepared, n *pg.ExplainStmt) error {
	o, err := parseExplainOptions(n, p.Statement.Script)
	if err != nil {
		return err
	}
	inner, args, err := s.explained(ctx, p, n.Query)
	if err != nil {
		return err
	}
	err = s.atSnapshot(func(w *work) error {
		pl, err := s.explainPlan(inner, w.catalog, o)
		if err == nil && args == nil {
			p.params = pl.Params
		}
		return err
	})
	if err != nil {
		return err
	}
	t := datum.T(datum.Text)
	if o.json {
		t = datum.T(datum.JSON)
	}
	p.columns = []plan.Column{{Name: "QUERY PLAN", Type: t}}
	p.run = func(ctx context.Context, bound []datum.Datum) (rowSource, error) {
		if args != nil {
			bound = args
		}
		lines, err := s.explain(ctx, inner, o, bound)
		if err != nil {
			return nil, err
		}
		src := &rows{tag: "EXPLAIN"}
		for _, l := range lines {
			src.list = append(src.list, []datum.Datum{datum.Str(l)})
		}
		return src, nil
	}
	return nil
}

// explained is the statement under EXPLAIN; for EXECUTE, the prepared one with
// its arguments.
func (s *Session) explained(ctx context.Context, p *Prepared, query *pg.Node) (*Prepared, []datum.Datum, error) {
	st := p.Statement
	st.Node = query
	switch n := query.Node.(type) {
	case *pg.Node_SelectStmt, *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt, *pg.Node_MergeStmt:
		return &Prepared{Statement: st, declared: p.declared}, nil, nil
	case *pg.Node_DeclareCursorStmt:
		st.Node = n.DeclareCursorStmt.Query
		return &Prepared{Statement: st, declared: p.declared}, nil, nil
	case *pg.Node_ExecuteStmt:
		target, err := s.Statement(n.ExecuteStmt.Name)
		if err != nil {
			return nil, nil, err
		}
		if target.query == nil {
			return nil, nil, pgerr.NotBuilt("EXPLAIN EXECUTE of %s is not supported", commandName(target.Statement.Node))
		}
		args, err := s.executeArgs(ctx, n.ExecuteStmt, target)
		if args == nil {
			args = []datum.Datum{}
		}
		return target, args, err
	}
	return nil, nil, pgerr.NotBuilt("EXPLAIN %s is not supported", commandName(query))
}

func (s *Session) explainPlan(p *Prepared, c *catalog.Catalog, o explainOptions) (*plan.Plan, error) {
	opts := s.planOptions(c, p)
	opts.Contract = o.contract
	if o.contract {
		opts.Virtual = nil
	}
	pl, err := plan.Statement(p.Statement.Node, opts)
	if err != nil {
		return nil, err
	}
	if !o.analyze {
		return pl, nil
	}
	if pl.Writes && !pl.Local {
		return nil, refuseWrite(p.Statement.Node, pl)
	}
	if f := pl.VolatileCall(); f != nil && !isLocal(f) {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "EXPLAIN ANALYZE cannot call the contract %s", f.Name).
			WithHint("It would be a blockchain transaction; EXPLAIN without ANALYZE shows what there is to show.")
	}
	return pl, nil
}

// explain makes the lines of the answer; of JSON there is one.
func (s *Session) explain(ctx context.Context, p *Prepared, o explainOptions, args []datum.Datum) (lines []string, err error) {
	err = s.atSnapshot(func(w *work) error {
		began := s.engine.now()
		pl, err := s.explainPlan(p, w.catalog, o)
		if err != nil {
			return err
		}
		x := &explanation{opts: o, planning: s.engine.now() - began}
		if cc := pl.AsCall(); cc != nil && isContract(cc.Func) {
			x.root = plan.ExplainCall(pl, cc, s.Format())
			lines = x.lines()
			return nil
		}
		x.root = plan.Explain(pl, s.Format())
		if o.analyze {
			if err := s.measure(ctx, x, pl, args, w); err != nil {
				return err
			}
		}
		lines = x.lines()
		return nil
	})
	return lines, err
}

// explanation is what EXPLAIN found.
type explanation struct {
	opts                explainOptions
	root                *plan.ExplainNode
	show                plan.ExplainOptions
	planning, execution int64 // microseconds
}

// measure runs the plan for EXPLAIN ANALYZE.
func (s *Session) measure(ctx context.Context, x *explanation, pl *plan.Plan, args []datum.Datum, w *work) error {
	began := s.engine.now()
	m := &exec.Measurement{}
	if x.opts.timing {
		m.Clock = s.engine.now
	}
	prog, err := exec.CompileMeasured(pl, m)
	if err != nil {
		return err
	}
	w.record(pl.Writes || pl.CallsVolatile(isLocal))
	if w.env, err = s.localEnv(ctx, w, pl.ReadsVirtual()); err != nil {
		return err
	}
	if _, err := prog.Run(w.env, args); err != nil {
		return err
	}
	if err := w.commit(); err != nil {
		return err
	}
	x.execution = s.engine.now() - began
	x.show = plan.ExplainOptions{Actual: m.Of, Timing: x.opts.timing}
	return nil
}

func milliseconds(us int64) string { return fmt.Sprintf("%d.%03d", us/1000, us%1000) }

func (x *explanation) lines() []string {
	if x.opts.json {
		return []string{x.json()}
	}
	out := x.root.Text(x.show)
	if x.opts.summary {
		out = append(out, "Planning Time: "+milliseconds(x.planning)+" ms")
		if x.opts.analyze {
			out = append(out, "Execution Time: "+milliseconds(x.execution)+" ms")
		}
	}
	return out
}

func (x *explanation) json() string {
	var b strings.Builder
	b.WriteString("[\n  {\n    \"Plan\": " + x.root.JSON(x.show, 2))
	if x.opts.summary {
		b.WriteString(",\n    \"Planning Time\": " + milliseconds(x.planning))
		if x.opts.analyze {
			b.WriteString(",\n    \"Execution Time\": " + milliseconds(x.execution))
		}
	}
	b.WriteString("\n  }\n]")
	return b.String()
}
