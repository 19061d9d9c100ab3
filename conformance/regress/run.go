package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tallystick/tallystick/conformance/psqlscript"
	"github.com/tallystick/tallystick/conformance/scratch"
	"github.com/tallystick/tallystick/conformance/wire"
)

// outcome is what became of one statement.
type outcome struct {
	file      string
	line      int
	text      string
	want, got wire.Answer
	verdict
	why   string   // for declared and excluded
	cause *outcome // an earlier statement that this one suffers from, or nil
}

// runner runs scripts on both sides.
type runner struct {
	regress  string // the directory of the tests
	pg, node *side
	restart  func() (crashed bool, err error) // after the node's connection was lost
	declared declarations
	effects  *effects
	crashes  int

	file     string
	scanner  *psqlscript.Scanner
	branches []branch
	commands map[string]int // psql's commands that were counted only
	outcomes []*outcome
	err      error
}

// script runs a file and returns what became of its statements.
func (r *runner) script(file string) ([]*outcome, error) {
	data, err := os.ReadFile(filepath.Join(r.regress, "sql", file+".sql"))
	if err != nil {
		return nil, err
	}
	for _, s := range []*side{r.pg, r.node} {
		s.vars = map[string]string{"HIDE_TABLEAM": "on", "HIDE_TOAST_COMPRESSION": "on", "DBNAME": s.database, "USER": scratch.User}
		if err := s.open(file, scratch.User); err != nil {
			return nil, err
		}
	}
	r.file, r.scanner, r.branches, r.outcomes = file, psqlscript.New(string(data)), nil, nil
	for r.err == nil {
		r.scanner.NonStandardStrings = !r.pg.standardStrings()
		it, ok := r.scanner.Next()
		if !ok {
			break
		}
		if it.Command != "" {
			if r.command(&it) {
				break
			}
		} else if r.active() {
			r.statement(it.Line, it.SQL.Expand(r.pg.value), it.SQL.Expand(r.node.value))
		}
	}
	return r.outcomes, r.err
}

// statement runs a statement on both sides and judges it. The texts differ only
// by the variables in them.
func (r *runner) statement(line int, text, nodeText string) *outcome {
	o := &outcome{file: r.file, line: line, text: text}
	var blocks []string
	o.want, _ = r.pg.run(text, func() string {
		blocks = append(blocks, r.scanner.CopyData())
		return blocks[len(blocks)-1]
	})
	next := 0
	before := r.nodeStatus()
	var lost bool
	o.got, lost = r.node.run(nodeText, func() string {
		if next++; next > len(blocks) {
			return ""
		}
		return blocks[next-1]
	})
	if lost {
		r.reconnect()
	}
	r.judge(o, before)
	r.outcomes = append(r.outcomes, o)
	return o
}

func (r *runner) nodeStatus() byte {
	if r.node.conn == nil {
		return 'I'
	}
	return r.node.conn.Status()
}

// reconnect goes on after the node's session is gone.
func (r *runner) reconnect() {
	crashed, err := r.restart()
	if crashed {
		r.crashes++
	}
	if err == nil {
		err = r.node.open(r.file, scratch.User)
	}
	if err != nil {
		r.err = err
	}
}

var (
	// inC are statements that load code in C or define objects by functions of
	// the server's own C code.
	inC = regexp.MustCompile(`(?is)/nowhere/regress|\blanguage\s+'?(c|internal)'?\b|^\s*load\s`)
)

func (r *runner) judge(o *outcome, before byte) {
	o.verdict = compare(o.text, &o.want, &o.got)
	root := o
	if o.class != equal {
		if o.cause = r.effects.cause(o); o.cause != nil {
			root = o.cause
		}
	}
	switch {
	case inC.MatchString(o.text):
		o.class, o.why, root = excluded, "needs functions in C", o
	case o.cause != nil && o.cause.class == excluded:
		o.class, o.why = excluded, o.cause.why
	case o.class == equal && r.names(o, excluded):
		o.class, o.why = excluded, "needs functions in C"
	case o.class == equal:
	default:
		if why := r.declared.reason(o); why != "" {
			o.class, o.why, root = declared, why, o
		} else if o.cause != nil && o.cause.class == declared {
			o.class, o.why = declared, o.cause.why
		}
	}
	r.effects.record(o, root)
	r.effects.transaction(before, r.nodeStatus(), o, root)
}

// names tells whether a statement names an object whose making was of a class.
func (r *runner) names(o *outcome, c class) bool {
	for _, w := range word.FindAllString(o.text, -1) {
		if root := r.effects.broken[name(w)]; root != nil && root.class == c && root.want.Err != nil && inC.MatchString(root.text) {
			return !strings.EqualFold(w, "public")
		}
	}
	return false
}
