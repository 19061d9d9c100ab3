package sql

import (
	"strings"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/parse"
)

const (
	// maxPlans bounds the texts that a session remembers, maxPlanText the length
	// of one.
	maxPlans    = 64
	maxPlanText = 8 << 10
)

// planCache remembers, per session, the last scripts of one statement that came
// without a name: their parse trees and, if they are queries, their plans. A
// plan holds for one catalog and one state of the settings; what does not fit is
// planned again, as if there were no cache.
type planCache struct {
	entries map[string]*planEntry
	clock   uint64 // counts uses
}

type planEntry struct {
	statements []parse.Statement
	used       uint64
	plan       *Prepared // nil: not planned, or not to be kept
}

// find returns what is known about a script; nil if nothing.
func (pc *planCache) find(script string) *planEntry {
	e := pc.entries[script]
	if e != nil {
		pc.clock++
		e.used = pc.clock
	}
	return e
}

// add remembers a script and forgets the one that was not used for longest.
func (pc *planCache) add(script string, list []parse.Statement) {
	if len(list) != 1 || len(script) > maxPlanText || readsClock(script) {
		return
	}
	if pc.entries == nil {
		pc.entries = make(map[string]*planEntry, maxPlans)
	}
	if len(pc.entries) >= maxPlans {
		oldest, at := "", uint64(0)
		for text, e := range pc.entries {
			if oldest == "" || e.used < at {
				oldest, at = text, e.used
			}
		}
		delete(pc.entries, oldest)
	}
	pc.clock++
	pc.entries[script] = &planEntry{statements: list, used: pc.clock}
}

// readsClock tells that a literal may mean the time at which it is read: 'now',
// 'today' and so on. Plans hold such literals as values.
func readsClock(script string) bool {
	s := strings.ToLower(script)
	for _, word := range []string{"now", "today", "tomorrow", "yesterday"} {
		if strings.Contains(s, word) {
			return true
		}
	}
	// A word may be written with escapes.
	return strings.Contains(s, "\\") || strings.Contains(s, "u&")
}

// entry finds the entry of a statement that is the whole script and has no name
// and no declared parameters.
func (pc *planCache) entry(p *Prepared) *planEntry {
	if p.Name != "" || len(p.declared) > 0 {
		return nil
	}
	e := pc.entries[p.Statement.Script]
	if e == nil || e.statements[0].Node != p.Statement.Node {
		return nil
	}
	return e
}

// fits tells that there is a plan for the statement under these circumstances.
func (e *planEntry) fits(c *catalog.Catalog, key planKey) bool {
	return e != nil && e.plan != nil && e.plan.query.catalog == c && e.plan.query.key == key
}

// keep remembers the plan of a query that was planned.
func (e *planEntry) keep(p *Prepared) {
	if e != nil && p.query != nil {
		e.plan = &Prepared{kind: p.kind, params: p.params, columns: p.columns, query: p.query}
	}
}
