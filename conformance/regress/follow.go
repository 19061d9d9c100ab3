package main

import (
	"regexp"
	"strings"
)

// effects remembers which objects are not on the node what they are in
// PostgreSQL, and through which statement: what then differs about them follows
// from that statement and has no fault of its own.
type effects struct {
	broken map[string]*outcome // by lower-case name
	failed *outcome            // what made the node's open transaction fail
}

func newEffects() *effects { return &effects{broken: map[string]*outcome{}} }

var (
	creates = regexp.MustCompile(`(?is)\b(?:create|declare)\s+(?:or\s+replace\s+)?(?:(?:temp|temporary|local|global|unlogged|unique|recursive|materialized|trusted|constraint|default|foreign|event)\s+)*` +
		`(table|view|function|procedure|aggregate|type|domain|sequence|index|schema|operator|cast|trigger|role|user|group|rule|policy|collation|extension|language|statistics|conversion|operator\s+class|operator\s+family|access\s+method)\s+` +
		`(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?("[^"]+"|[\w.$]+)`)
	cursors   = regexp.MustCompile(`(?is)^\s*(?:declare|prepare)\s+("[^"]+"|[\w$]+)`)
	changes   = regexp.MustCompile(`(?is)\b(?:insert\s+into|update(?:\s+only)?|delete\s+from(?:\s+only)?|merge\s+into|truncate(?:\s+table)?(?:\s+only)?|alter\s+(?:foreign\s+)?(?:table|view|domain|type|sequence|function|procedure|role|user|index|materialized\s+view)(?:\s+if\s+exists)?(?:\s+only)?|refresh\s+materialized\s+view(?:\s+concurrently)?|copy|comment\s+on\s+\w+|create\s+(?:or\s+replace\s+)?rule\s+\w+\s+as\s+on\s+\w+\s+to|grant\s+[\w\s,()]+\s+on(?:\s+table)?|revoke\s+[\w\s,()]+\s+on(?:\s+table)?|into(?:\s+temp|\s+temporary|\s+unlogged)?(?:\s+table)?|on(?:\s+only)?)\s+("[^"]+"|[\w.$]+)`)
	word      = regexp.MustCompile(`"[^"]+"|[A-Za-z_][\w$]*`)
	ownOfPG   = regexp.MustCompile(`(?is)^\s*(?:select|with|values|table|show|explain|fetch|begin|start|commit|end|rollback|abort|savepoint|release|set|reset|analyze|vacuum)\b`)
	notAnName = map[string]bool{"select": true, "values": true, "only": true, "table": true, "conflict": true, "as": true, "on": true, "set": true, "delete": true, "update": true, "insert": true, "true": true, "commit": true, "all": true, "public": true, "schema": true, "function": true, "database": true, "column": true, "constraint": true}
)

// name is how an object is remembered: the last part, without quotes.
func name(s string) string {
	if i := strings.LastIndexByte(s, '.'); i >= 0 && !strings.HasPrefix(s, `"`) {
		s = s[i+1:]
	}
	return strings.ToLower(strings.Trim(s, `"`))
}

// cause finds the earlier statement that a difference follows from.
func (e *effects) cause(o *outcome) *outcome {
	if o.got.Err != nil && o.got.Err.Code == "25P02" && (o.want.Err == nil || o.want.Err.Code != "25P02") {
		return e.failed
	}
	for _, w := range word.FindAllString(o.text, -1) {
		n := name(w)
		if root := e.broken[n]; root != nil && (root.file == o.file || len(n) >= farName) {
			return root
		}
	}
	return nil
}

// farName is how long a name has to be for other scripts to mean the same by it.
const farName = 5

// record takes in what a statement did: made objects are sound or broken from
// now on, and a change that the node did not do breaks them.
func (e *effects) record(o *outcome, root *outcome) {
	sound := o.class == equal
	if o.want.Err != nil && (o.got.Err == nil || sound) {
		// Nothing was done in PostgreSQL. If it was on the node, what follows
		// is about a different state.
		if o.got.Err != nil || sound {
			return
		}
	}
	for _, n := range madeBy(o.text) {
		if sound {
			delete(e.broken, n)
		} else {
			e.broken[n] = root
		}
	}
	if sound || ownOfPG.MatchString(o.text) && !strings.Contains(strings.ToLower(o.text), "into") {
		return
	}
	if o.want.Err != nil && o.got.Err != nil {
		return
	}
	for _, m := range changes.FindAllStringSubmatch(o.text, 4) {
		if n := name(m[1]); !notAnName[n] && e.broken[n] == nil {
			e.broken[n] = root
		}
	}
}

// madeBy lists the names that a statement creates.
func madeBy(text string) []string {
	var names []string
	for _, m := range creates.FindAllStringSubmatch(text, -1) {
		if n := name(m[2]); !notAnName[n] {
			names = append(names, n)
		}
	}
	if m := cursors.FindStringSubmatch(text); m != nil {
		names = append(names, name(m[1]))
	}
	return names
}

// transaction follows the state of the node's transaction block.
func (e *effects) transaction(before, after byte, o, root *outcome) {
	if after != 'E' {
		e.failed = nil
	} else if before != 'E' {
		e.failed = root
	}
}
