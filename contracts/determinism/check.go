package determinism

import (
	"slices"
	"strings"

	"github.com/tallystick/tallystick/contracts/plpgsql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// Inspect shows all SQL of a function against a catalog: package contracts
// knows the languages. An error is that of a function that does not compile.
type Inspect func(fn *catalog.Func, cat *catalog.Catalog, to *plpgsql.Inspector) error

// Functions examines functions and everything that they call, each once, in the
// order given and then in the order of the calls. inspect must not be nil.
func Functions(list []*catalog.Func, cat *catalog.Catalog, inspect Inspect) []Finding {
	var found []Finding
	seen := map[catalog.OID]bool{}
	queue := slices.Clone(list)
	for len(queue) > 0 {
		fn := queue[0]
		queue = queue[1:]
		if seen[fn.OID] || fn.Language == catalog.SystemLanguage {
			continue
		}
		seen[fn.OID] = true
		own, calls := function(fn, cat, inspect)
		found = append(found, own...)
		queue = append(queue, calls...)
	}
	return found
}

// function examines one function.
func function(fn *catalog.Func, cat *catalog.Catalog, inspect Inspect) (found []Finding, calls []*catalog.Func) {
	to := &plpgsql.Inspector{
		Piece: func(p *plpgsql.Piece) {
			if p.Dynamic {
				found = append(found, Finding{Offset: startOf(fn.Body, p.Start), Severity: Warning, Rule: DynamicSQL,
					Message: "what EXECUTE runs is known and checked only when it is executed",
					Hint:    "Where the text does not vary, write the statement itself."})
				return
			}
			if p.Call != nil {
				calls = append(calls, p.Call)
				return
			}
			list, callees := examine(p)
			for i := range list {
				list[i].move(p, fn.Body)
			}
			found, calls = append(found, list...), append(calls, callees...)
		},
		Refused: func(what plan.Refusal, offset int, e *pgerr.Error) {
			found = append(found, Finding{Offset: offset, Severity: Error, Rule: refusals[what], Message: e.Message, Hint: e.Hint})
		},
		Failed: func(offset int, err error) {
			if e, ok := pgerr.From(err); ok {
				found = append(found, Finding{Offset: startOf(fn.Body, offset), Severity: Warning, Rule: CannotPlan, Message: e.Message, Hint: e.Hint})
			}
		},
	}
	if err := inspect(fn, cat, to); err != nil {
		if e, ok := pgerr.From(err); ok {
			found = append(found, NotCompiled(fn, e))
		}
	}
	for i := range found {
		found[i].in(fn)
	}
	return sorted(found), calls
}

// move moves an offset from the text of a piece to the body.
func (f *Finding) move(p *plpgsql.Piece, body string) {
	if f.Offset == unplaced {
		f.Offset = startOf(body, p.Start)
		return
	}
	f.Offset += p.Offset
}

// startOf is where a piece begins, space skipped.
func startOf(body string, offset int) int {
	offset = max(0, min(offset, len(body)))
	for offset > 0 && offset < len(body) && letter(body[offset]) && letter(body[offset-1]) {
		offset-- // PERFORM is planned as a SELECT that ends where it ends
	}
	return len(body) - len(strings.TrimLeft(body[offset:], " \t\r\n"))
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// refusals gives the rule for what the planner refuses.
var refusals = [...]Rule{
	plan.RefusedFunction: RefusedFunction, plan.RefusedRelation: UnreplicatedRead, plan.RefusedColumn: SystemColumn,
}

// NotCompiled is the finding of a function that does not compile.
func NotCompiled(fn *catalog.Func, e *pgerr.Error) Finding {
	f := Finding{Severity: Error, Rule: NotAllowed, Message: e.Message, Hint: e.Hint}
	if e.InternalQuery == fn.Body {
		f.Offset = byteOffset(fn.Body, e.InternalPosition)
	}
	f.in(fn)
	return f
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

// Verify is the check of one piece when it is planned for execution: 0A000 for
// the first finding that refuses it.
func Verify(p *plpgsql.Piece) error {
	found, _ := examine(p)
	if len(found) == 0 {
		return nil
	}
	f := found[0]
	return pgerr.New(pgerr.FeatureNotSupported, "contract is not deterministic: %s [%s]", f.Message, f.Rule).WithHint("%s", f.Hint)
}
