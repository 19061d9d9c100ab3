package main

import (
	"strings"

	"github.com/tallystick/tallystick/conformance/psqlscript"
	"github.com/tallystick/tallystick/conformance/scratch"
	"github.com/tallystick/tallystick/conformance/wire"
)

// branch is an \if that is not closed yet.
type branch struct {
	active bool // the statements here are run
	taken  bool // a branch was active before
	outer  bool // what is around it is active
}

func (r *runner) active() bool {
	return len(r.branches) == 0 || r.branches[len(r.branches)-1].active
}

// command obeys one of psql's commands; it returns true for \q.
func (r *runner) command(it *psqlscript.Item) (quit bool) {
	if r.condition(it) || !r.active() {
		return false
	}
	switch it.Command {
	case "q", "quit":
		return true
	case "set", "unset", "getenv":
		r.variable(it)
	case "g", "gx", "gset", "gexec", "crosstabview":
		r.send(it)
	case "c", "connect":
		r.connect(it)
	case "copy":
		text := "copy " + it.Args.Expand(r.pg.value)
		r.statement(it.Line, text, text)
	case "echo", "qecho", "warn", "pset", "a", "t", "x", "timing", "r", "reset", "p", "o", "encoding":
		// About what psql prints.
	default:
		r.commands[it.Command]++
	}
	return false
}

// condition obeys \if and its kin.
func (r *runner) condition(it *psqlscript.Item) bool {
	n := len(r.branches) - 1
	switch it.Command {
	case "if":
		on := r.active() && truth(it.Args.Expand(r.pg.value))
		r.branches = append(r.branches, branch{active: on, taken: on, outer: r.active()})
		return true
	case "elif", "else":
		if n < 0 {
			return true
		}
		b := &r.branches[n]
		b.active = b.outer && !b.taken && (it.Command == "else" || truth(it.Args.Expand(r.pg.value)))
		b.taken = b.taken || b.active
		return true
	case "endif":
		if n >= 0 {
			r.branches = r.branches[:n]
		}
		return true
	}
	return false
}

// truth reads a boolean as psql does (ParseVariableBool).
func truth(s string) bool {
	s = strings.ToLower(strings.Trim(strings.TrimSpace(s), `'"`))
	return s == "1" || s == "on" || s != "" && (strings.HasPrefix("true", s) || strings.HasPrefix("yes", s))
}

// variable obeys \set, \unset and \getenv on each side.
func (r *runner) variable(it *psqlscript.Item) {
	for _, s := range []*side{r.pg, r.node} {
		args := arguments(it.Args.Expand(s.value))
		switch {
		case len(args) == 0:
		case it.Command == "unset":
			delete(s.vars, args[0])
		case it.Command == "set":
			s.vars[args[0]] = strings.Join(args[1:], "")
		case len(args) > 1:
			if v, ok := s.environment(args[1], r.regress); ok {
				s.vars[args[0]] = v
			}
		}
	}
}

// arguments splits the arguments of a command; quotes keep blanks together.
func arguments(s string) []string {
	var args []string
	for {
		s = strings.TrimLeft(s, " \t")
		if s == "" {
			return args
		}
		var b strings.Builder
		for s != "" && s[0] != ' ' && s[0] != '\t' {
			if i := strings.IndexByte(s[1:], '\''); s[0] == '\'' && i >= 0 {
				b.WriteString(s[1 : i+1])
				s = s[i+2:]
				continue
			}
			b.WriteByte(s[0])
			s = s[1:]
		}
		args = append(args, b.String())
	}
}

// send runs the statement before \g, \gset and \gexec, and does with the rows
// what the command says.
func (r *runner) send(it *psqlscript.Item) {
	if len(it.SQL) == 0 {
		return
	}
	o := r.statement(it.Line, it.SQL.Expand(r.pg.value), it.SQL.Expand(r.node.value))
	switch it.Command {
	case "gset":
		prefix := it.Args.Expand(r.pg.value)
		keep(r.pg, &o.want, prefix)
		keep(r.node, &o.got, prefix)
	case "gexec":
		want, got := cells(&o.want), cells(&o.got)
		for i, text := range want {
			if len(got) == len(want) {
				r.statement(it.Line, text, got[i])
			}
		}
	}
}

// keep stores the columns of the only row as variables.
func keep(s *side, a *wire.Answer, prefix string) {
	if len(a.Results) == 0 || len(a.Results[len(a.Results)-1].Rows) != 1 {
		return
	}
	res := &a.Results[len(a.Results)-1]
	for i, c := range res.Columns {
		if v := res.Rows[0][i]; v.Null {
			delete(s.vars, prefix+c.Name)
		} else {
			s.vars[prefix+c.Name] = v.Text
		}
	}
}

func cells(a *wire.Answer) []string {
	var texts []string
	for _, res := range a.Results {
		for _, row := range res.Rows {
			for _, v := range row {
				if !v.Null {
					texts = append(texts, v.Text)
				}
			}
		}
	}
	return texts
}

// connect opens new sessions, as the user that \c names. Where the node does
// not let them in, the admin goes on in their name.
func (r *runner) connect(it *psqlscript.Item) {
	user := r.pg.user
	if args := arguments(it.Args.Expand(r.pg.value)); len(args) > 1 && args[1] != "-" {
		user = args[1]
	}
	if err := r.pg.open(r.file, user); err != nil {
		r.err = err
		return
	}
	if r.node.open(r.file, user) == nil {
		return
	}
	if r.err = r.node.open(r.file, scratch.User); r.err == nil && user != scratch.User {
		r.node.run(`set session authorization "`+user+`"`, func() string { return "" })
	}
}
