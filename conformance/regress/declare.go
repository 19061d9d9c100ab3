package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// declarations are the differences that are intended, from declared.txt.
type declarations []declaration

// declaration says for a kind of statement why it differs.
type declaration struct {
	reason  string
	file    string // "*" for all
	subject string // statement, answer or every
	pattern *regexp.Regexp
}

// readDeclarations reads a list. A line at the left margin is a reason; the
// indented lines below it say which statements it is the reason for:
//
//	FILE statement REGEXP   the statement's text matches
//	FILE answer REGEXP      the node's "SQLSTATE message" matches
//	FILE every              all statements of the file
//
// with * for any file. Case is ignored and . matches line ends.
func readDeclarations(path string) (declarations, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list declarations
	reason := ""
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case line[0] != ' ' && line[0] != '\t':
			reason = line
		default:
			d, err := readDeclaration(strings.TrimSpace(line))
			if err != nil || reason == "" {
				return nil, fmt.Errorf("%s:%d: cannot read %q (%v)", path, i+1, line, err)
			}
			d.reason = reason
			list = append(list, d)
		}
	}
	return list, nil
}

func readDeclaration(line string) (d declaration, err error) {
	f := strings.SplitN(line, " ", 3)
	switch {
	case len(f) == 2 && f[1] == "every":
	case len(f) == 3 && (f[1] == "statement" || f[1] == "answer"):
		if d.pattern, err = regexp.Compile("(?is)" + f[2]); err != nil {
			return d, err
		}
	default:
		return d, fmt.Errorf("neither statement, answer nor every")
	}
	d.file, d.subject = f[0], f[1]
	return d, nil
}

// reason finds why a difference is intended, "" if nothing says so.
func (list declarations) reason(o *outcome) string {
	for i := range list {
		if d := &list[i]; (d.file == "*" || d.file == o.file) && d.matches(o) {
			return d.reason
		}
	}
	return ""
}

func (d *declaration) matches(o *outcome) bool {
	switch d.subject {
	case "every":
		return true
	case "statement":
		return d.pattern.MatchString(o.text)
	default:
		return o.got.Err != nil && d.pattern.MatchString(o.got.Err.Code+" "+o.got.Err.Text)
	}
}
