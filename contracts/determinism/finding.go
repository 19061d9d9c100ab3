package determinism

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Severity says what a finding means for a deployment.
type Severity string

// The severities: an error refuses the deployment, a warning is recorded.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Rule names what a finding is about; package documentation lists them.
type Rule string

// The rules.
const (
	RefusedFunction  Rule = "refused-function"
	UnreplicatedRead Rule = "unreplicated-read"
	PrivateFunction  Rule = "private-function"
	SystemColumn     Rule = "system-column"
	LimitOrder       Rule = "order"
	FirstRow         Rule = "first-row"
	DistinctOn       Rule = "distinct-on"
	AggregateOrder   Rule = "aggregate-order"
	ArrayOrder       Rule = "array-order"
	WindowOrder      Rule = "window-order"
	NoIndex          Rule = "no-index"
	WholeTable       Rule = "whole-table"
	BlindWrite       Rule = "blind-write"
	NotAllowed       Rule = "not-allowed"
	DynamicSQL       Rule = "dynamic-sql"
	CannotPlan       Rule = "cannot-plan"
	NotExecutable    Rule = "not-executable"
)

// Finding is one thing that is wrong with a function.
type Finding struct {
	// Function is the qualified name with the argument types.
	Function string
	// It is empty in what concerns a script as a whole; Line and Column are then
	// those of the script, 0 if unknown.
	// Offset is the byte offset in the function's body, Line and Column the same
	// place, from 1; columns count characters.
	Offset, Line, Column int
	Severity             Severity
	Rule                 Rule
	// Message says what is wrong and why, Hint what to write instead.
	Message, Hint string
}

// String is the finding on one line, as compilers write it.
func (f *Finding) String() string {
	s := f.place() + ": " + string(f.Severity) + ": " + f.about()
	if f.Hint != "" {
		s += " " + f.Hint
	}
	return s
}

func (f *Finding) place() string {
	where := f.Function
	if where == "" {
		where = "script"
	}
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", where, f.Line, f.Column)
	}
	return where
}

func (f *Finding) about() string { return fmt.Sprintf("%s [%s]", f.Message, f.Rule) }

// in places the finding in a function: line and column of the offset in its
// body.
func (f *Finding) in(fn *catalog.Func) {
	f.Function = fn.Schema + "." + fn.Name + "(" + fn.Signature() + ")"
	body := fn.Body
	f.Offset = max(0, min(f.Offset, len(body)))
	before := body[:f.Offset]
	f.Line = strings.Count(before, "\n") + 1
	f.Column = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

// Errors counts the findings that refuse a deployment.
func Errors(list []Finding) int {
	n := 0
	for i := range list {
		if list[i].Severity == Error {
			n++
		}
	}
	return n
}

// Refusal is the error of a contract with these findings, nil if none of them
// is an error: 0A000, with all of them as detail.
func Refusal(list []Finding) error {
	n := Errors(list)
	if n == 0 {
		return nil
	}
	lines := make([]string, len(list))
	for i := range list {
		lines[i] = list[i].String()
	}
	word := "findings"
	if n == 1 {
		word = "finding"
	}
	return pgerr.New(pgerr.FeatureNotSupported, "contract is not deterministic: %d %s", n, word).
		WithDetail("%s", strings.Join(lines, "\n"))
}

// Notice is the finding as a message to a client.
func (f *Finding) Notice() *pgerr.Error {
	e := pgerr.New(pgerr.FeatureNotSupported, "%s: %s", f.place(), f.about())
	if f.Severity == Warning {
		e.Code = pgerr.Warning
	}
	e.Hint = f.Hint
	return e
}

// sorted puts the findings of one function in the order of its text, each once.
func sorted(list []Finding) []Finding {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(list, func(a, b Finding) bool {
		return a.Offset == b.Offset && a.Rule == b.Rule && a.Message == b.Message
	})
}
