package main

import (
	"fmt"
	"strconv"
	"strings"
)

// kind says what a record asks for.
type kind uint8

const (
	statement kind = iota
	query
	threshold
	halt
)

// record is one record of a script.
type record struct {
	kind kind
	line int // the number of its first line
	skip bool
	sql  string

	fails bool // of a statement: it gives an error

	types    string // of a query: I, R and T
	sort     string // nosort, rowsort, valuesort
	label    string
	checked  bool // it has an expected result
	expected []string

	limit int // of a threshold
}

// dialects are the names that mean this engine in skipif and onlyif.
var dialects = map[string]bool{"postgresql": true, "tallystick": true}

// parseScript reads the records of a script.
func parseScript(text string) ([]*record, error) {
	p := &parser{lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
	var list []*record
	for {
		r, err := p.record()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.next, err)
		}
		if r == nil {
			return list, nil
		}
		list = append(list, r)
	}
}

// parser goes through the lines of a script.
type parser struct {
	lines []string
	next  int
}

// record returns the next record, nil at the end.
func (p *parser) record() (*record, error) {
	skip := false
	for p.next < len(p.lines) {
		words := strings.Fields(p.lines[p.next])
		p.next++
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		switch words[0] {
		case "skipif", "onlyif":
			if len(words) < 2 {
				return nil, fmt.Errorf("%s without a system", words[0])
			}
			skip = skip || dialects[words[1]] == (words[0] == "skipif")
			continue
		}
		r := &record{line: p.next, skip: skip}
		return r, p.body(r, words)
	}
	return nil, nil
}

// body reads a record whose first line has the words.
func (p *parser) body(r *record, words []string) error {
	switch words[0] {
	case "statement":
		return p.statement(r, words)
	case "query":
		return p.query(r, words)
	case "hash-threshold":
		r.kind = threshold
		if len(words) < 2 {
			return fmt.Errorf("hash-threshold without a number")
		}
		var err error
		r.limit, err = strconv.Atoi(words[1])
		return err
	case "halt":
		r.kind = halt
		return nil
	}
	return fmt.Errorf("no such record: %q", words[0])
}

func (p *parser) statement(r *record, words []string) error {
	if len(words) < 2 || words[1] != "ok" && words[1] != "error" {
		return fmt.Errorf("a statement is ok or error")
	}
	r.fails = words[1] == "error"
	r.sql = strings.Join(p.block(""), "\n")
	return nil
}

func (p *parser) query(r *record, words []string) error {
	r.kind, r.sort = query, "nosort"
	if len(words) < 2 || strings.Trim(words[1], "IRT") != "" {
		return fmt.Errorf("the types of a query are letters I, R and T")
	}
	r.types = words[1]
	if len(words) > 2 {
		r.sort = words[2]
	}
	if r.sort != "nosort" && r.sort != "rowsort" && r.sort != "valuesort" {
		return fmt.Errorf("no such order: %q", r.sort)
	}
	if len(words) > 3 {
		r.label = words[3]
	}
	r.sql = strings.Join(p.block("----"), "\n")
	if p.next > 0 && p.lines[p.next-1] == "----" {
		r.checked, r.expected = true, p.block("")
	}
	return nil
}

// block returns the lines before the next empty one or the end mark, which is
// read too.
func (p *parser) block(end string) []string {
	begin := p.next
	for p.next < len(p.lines) {
		line := p.lines[p.next]
		p.next++
		if line == "" || line == end {
			return p.lines[begin : p.next-1]
		}
	}
	return p.lines[begin:]
}
