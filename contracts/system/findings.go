package system

import (
	"slices"

	"github.com/tallystick/tallystick/contracts/determinism"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Apply executes a script in env, examines the functions that it creates and
// those of its triggers, with all that they call, against the catalog that it leaves, and returns what was
// found. The error is that of the script, or 0A000 if a finding is an error;
// undoing is the caller's business.
func (s *System) Apply(env *exec.Env, owner, script string, notice func(*pgerr.Error)) ([]determinism.Finding, error) {
	a := application{}
	err := s.engine.ScriptWith(env, owner, script, sql.ScriptOptions{Notice: notice, Created: a.created, Attached: a.attached})
	if err != nil {
		return nil, err
	}
	found := a.examine(env.Catalog, s.inspect)
	return found, determinism.Refusal(found)
}

// application is a script that is being executed.
type application struct {
	functions []*catalog.Func
	refusals  map[catalog.OID]*pgerr.Error // of functions that do not compile
}

// created notes a function. That it is refused as a contract becomes a finding,
// so that the report is complete; any other error ends the script.
func (a *application) created(fn *catalog.Func, err error) error {
	if err != nil {
		e, ok := pgerr.From(err)
		if !ok || e.Code != pgerr.FeatureNotSupported || e.Unbuilt {
			return err
		}
		if a.refusals == nil {
			a.refusals = map[catalog.OID]*pgerr.Error{}
		}
		a.refusals[fn.OID] = e
	} else {
		delete(a.refusals, fn.OID) // it was replaced in the same script
	}
	a.functions = append(a.functions, fn)
	return nil
}

// attached notes the function of a new trigger: the table says what NEW and OLD
// are.
func (a *application) attached(fn *catalog.Func) { a.functions = append(a.functions, fn) }

// examine examines the functions that are still there.
func (a *application) examine(cat *catalog.Catalog, inspect determinism.Inspect) []determinism.Finding {
	var list []*catalog.Func
	for _, fn := range a.functions {
		for _, now := range cat.Funcs(fn.Schema, fn.Name) {
			if now.OID == fn.OID && !slices.Contains(list, now) {
				list = append(list, now)
			}
		}
	}
	found := determinism.Functions(list, cat, inspect)
	for _, fn := range list {
		e := a.refusals[fn.OID]
		if e == nil {
			continue
		}
		f := determinism.NotCompiled(fn, e)
		named := func(g determinism.Finding) bool { return g.Function == f.Function && g.Severity == determinism.Error }
		if !slices.ContainsFunc(found, named) {
			found = append(found, f)
		}
	}
	return found
}

// rehearse applies a proposed script and undoes it. A script that does not run
// yet may do so when another proposal has been deployed: that is a warning, for
// it is applied and examined again when it is submitted. Exceeded limits and what
// does not exist here are errors.
func (c *call) rehearse(owner, script string) ([]determinism.Finding, error) {
	sp, cat := c.env.Txn.Savepoint(), c.env.Catalog
	found, err := c.Apply(c.env, owner, script, nil)
	c.env.Txn.RollbackTo(sp)
	c.env.Catalog = cat
	e, ok := pgerr.From(err)
	final := ok && (e.Code == pgerr.ProgramLimitExceeded || e.Code == pgerr.FeatureNotSupported)
	if !ok || !e.IsVerdict() || final || found != nil {
		return found, err
	}
	f := determinism.Finding{Severity: determinism.Warning, Rule: determinism.NotExecutable, Message: e.Message, Hint: "It is executed and examined again when it is submitted."}
	f.Line, f.Column = place(script, e.Position)
	return []determinism.Finding{f}, nil
}

// report tells the client what was found, one message each.
func (c *call) report(found []determinism.Finding) {
	if c.env.Ctx.Notice == nil {
		return
	}
	for i := range found {
		severity := "NOTICE"
		if found[i].Severity == determinism.Warning {
			severity = "WARNING"
		}
		c.env.Ctx.Notice(severity, found[i].Notice())
	}
}

// place is the line and column of character number pos, from 1; 0, 0 if it is
// unknown.
func place(text string, pos int) (line, column int) {
	if pos <= 0 {
		return 0, 0
	}
	line, column = 1, 1
	for _, r := range text {
		if pos--; pos == 0 {
			break
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}

// record replaces the findings of a proposal.
func (c *call) record(id datum.Datum, found []determinism.Finding) error {
	var old [][]datum.Datum
	err := findings.each(c.env, false, func(row []datum.Datum) bool {
		old = append(old, row)
		return true
	}, id)
	if err != nil {
		return err
	}
	for _, row := range old {
		if err := findings.delete(c.env, row); err != nil {
			return err
		}
	}
	for i := range found {
		f := &found[i]
		hint := datum.Null
		if f.Hint != "" {
			hint = datum.Str(f.Hint)
		}
		row := []datum.Datum{
			id, datum.Int(int64(i + 1)), datum.Str(f.Function), datum.Int(int64(f.Line)), datum.Int(int64(f.Column)),
			datum.Str(string(f.Rule)), datum.Str(string(f.Severity)), datum.Str(f.Message), hint,
		}
		if err := findings.insert(c.env, row); err != nil {
			return err
		}
	}
	return nil
}
