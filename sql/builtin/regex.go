package builtin

import (
	"cmp"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// parseFlags reads the flags argument of the regexp functions; g is reported
// apart.
func parseFlags(flags string) (opt reOptions, global bool, err error) {
	for _, c := range flags {
		switch {
		case c == 'g':
			global = true
		case c == 'b':
			return opt, global, pgerr.NotBuilt("basic regular expressions are not supported")
		case c >= utf8.RuneSelf || !opt.set(byte(c)):
			return opt, global, pgerr.New(pgerr.InvalidParameterValue, "invalid regular expression option: \"%c\"", c)
		}
	}
	return opt, global, nil
}

// scanner searches one text for matches of an expression.
type scanner struct {
	c *Ctx
	r *regex
	s string
	m *reMatcher // made when it is needed
}

func (r *regex) scan(c *Ctx, s string) scanner { return scanner{c: c, r: r, s: s} }

func (x *scanner) matcher() *reMatcher {
	if x.m == nil {
		x.m = x.r.own.matcher(x.c, x.s)
	}
	return x.m
}

// search finds the first match that begins at or behind byte offset at: the
// bounds of the match and of its groups, -1 for groups that took no part; nil if
// there is none.
func (x *scanner) search(at int) ([]int, error) {
	if x.r.re == nil {
		return x.matcher().find(at)
	}
	m := x.r.search(x.s, at)
	if m == nil || x.r.groups == 0 {
		return m, nil
	}
	return x.matcher().within(m[0], m[1])
}

// match tells whether the expression matches anywhere in a text.
func (r *regex) match(c *Ctx, s string) (bool, error) {
	if r.test != nil {
		return r.test.MatchString(s), nil
	}
	m, err := r.own.matcher(c, s).find(0)
	return m != nil, err
}

// search finds the bounds of the first match that begins at or behind byte offset
// at.
func (r *regex) search(s string, at int) []int {
	if at == 0 {
		return r.re.FindStringIndex(s)
	}
	if r.after == nil {
		return shift(r.re.FindStringIndex(s[at:]), at)
	}
	_, n := utf8.DecodeLastRuneInString(s[:at])
	m := shift(r.after.FindStringIndex(s[at-n:]), at-n)
	if m != nil {
		_, n := utf8.DecodeRuneInString(s[m[0]:])
		m[0] += n
	}
	return m
}

func shift(m []int, by int) []int {
	for i := range m {
		m[i] += by
	}
	return m
}

// each calls f for the matches from byte offset at on, until it returns false.
// An empty match may stand directly behind another match, as in PostgreSQL. A
// search may read to the end of the text though its match is short, so every
// one is charged for.
func (r *regex) each(c *Ctx, s string, at int, f func(m []int) bool) error {
	x := r.scan(c, s)
	for at <= len(s) {
		if err := c.Budget.Spend(1 + int64(len(s)-at)*r.weight/256); err != nil {
			return err
		}
		m, err := x.search(at)
		if err != nil || m == nil || !f(m) {
			return err
		}
		if at = m[1]; m[1] == m[0] {
			if at == len(s) {
				return nil
			}
			_, n := utf8.DecodeRuneInString(s[at:])
			at += n
		}
	}
	return nil
}

// regexCharged compiles, and charges for compiling and for one pass over text.
func regexCharged(c *Ctx, text, pattern string, opt reOptions) (*regex, error) {
	if err := c.Budget.Spend(int64(len(pattern)) / 16); err != nil {
		return nil, err
	}
	r, err := compileRegex(pattern, opt)
	if err != nil {
		return nil, err
	}
	return r, c.Budget.Spend(int64(len(text)) * r.weight / 64)
}

func regexMatch(not, fold bool) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		r, err := regexCharged(c, a[0].Str(), a[1].Str(), reOptions{fold: fold})
		if err != nil {
			return datum.Null, err
		}
		found, err := r.match(c, a[0].Str())
		return datum.Bool(found != not), err
	}
}

func regexpLike(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	opt, err := flagsWithoutGlobal("regexp_like()", a, 2)
	if err != nil {
		return datum.Null, err
	}
	r, err := regexCharged(c, a[0].Str(), a[1].Str(), opt)
	if err != nil {
		return datum.Null, err
	}
	found, err := r.match(c, a[0].Str())
	return datum.Bool(found), err
}

func flagsWithoutGlobal(function string, a []datum.Datum, i int) (reOptions, error) {
	if i >= len(a) {
		return reOptions{}, nil
	}
	opt, global, err := parseFlags(a[i].Str())
	if err == nil && global {
		e := pgerr.New(pgerr.InvalidParameterValue, "%s does not support the \"global\" option", function)
		if function == "regexp_match()" {
			return opt, e.WithHint("Use the regexp_matches function instead.")
		}
		return opt, e
	}
	return opt, err
}

func piece(s string, m []int, group int) datum.Datum {
	if m[2*group] < 0 {
		return datum.Null
	}
	return datum.Str(s[m[2*group]:m[2*group+1]])
}

// groupsOf is the array that regexp_match returns: the groups, or the match.
func groupsOf(r *regex, s string, m []int) datum.Datum {
	if r.groups == 0 {
		return datum.MakeArray(datum.Text, []datum.Datum{piece(s, m, 0)})
	}
	vals := make([]datum.Datum, r.groups)
	for i := range vals {
		vals[i] = piece(s, m, i+1)
	}
	return datum.MakeArray(datum.Text, vals)
}

func regexpMatch(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	opt, err := flagsWithoutGlobal("regexp_match()", a, 2)
	if err != nil {
		return datum.Null, err
	}
	s := a[0].Str()
	r, err := regexCharged(c, s, a[1].Str(), opt)
	if err != nil {
		return datum.Null, err
	}
	x := r.scan(c, s)
	m, err := x.search(0)
	if m == nil || err != nil {
		return datum.Null, err
	}
	return groupsOf(r, s, m), nil
}

func regexpMatches(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
	var opt reOptions
	var global bool
	var err error
	if len(a) > 2 {
		if opt, global, err = parseFlags(a[2].Str()); err != nil {
			return err
		}
	}
	s := a[0].Str()
	r, err := regexCharged(c, s, a[1].Str(), opt)
	if err != nil {
		return err
	}
	row := make([]datum.Datum, 1)
	budgetErr := r.each(c, s, 0, func(m []int) bool {
		row[0] = groupsOf(r, s, m)
		err = emit(row)
		return err == nil && global
	})
	return cmp.Or(err, budgetErr)
}

// substringRegex is substring(text from pattern): the first group, or the match.
func substringRegex(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, pattern := a[0].Str(), a[1].Str()
	r, err := regexCharged(c, s, pattern, reOptions{})
	if err != nil {
		return datum.Null, err
	}
	x := r.scan(c, s)
	m, err := x.search(0)
	if m == nil || err != nil {
		return datum.Null, err
	}
	return piece(s, m, min(r.groups, 1)), nil
}

// startArg checks the start argument of the regexp functions.
func startArg(s string, a []datum.Datum, i int) (int, error) {
	if i >= len(a) {
		return 0, nil
	}
	n := a[i].Int()
	if n <= 0 {
		return 0, badParameter("start", n)
	}
	if n > int64(utf8.RuneCountInString(s))+1 {
		return len(s) + 1, nil
	}
	return runeOffset(s, n-1), nil
}

func badParameter(name string, v int64) error {
	return pgerr.New(pgerr.InvalidParameterValue, "invalid value for parameter \"%s\": %d", name, v)
}

// nthArg checks an argument that must be at least least; def if it is left out.
func nthArg(name string, a []datum.Datum, i int, least, def int64) (int64, error) {
	if i >= len(a) {
		return def, nil
	}
	if v := a[i].Int(); v >= least {
		return v, nil
	}
	return 0, badParameter(name, a[i].Int())
}

func regexpReplace(extended bool) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		s := a[0].Str()
		at, nth := 0, int64(1)
		var opt reOptions
		var err error
		global := false
		switch {
		case !extended && len(a) == 4:
			if f := a[3].Str(); f != "" && f[0] >= '0' && f[0] <= '9' {
				return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "invalid regular expression option: \"%c\"", f[0]).
					WithHint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.")
			}
			if opt, global, err = parseFlags(a[3].Str()); err != nil {
				return datum.Null, err
			}
		case extended:
			if at, err = startArg(s, a, 3); err != nil {
				return datum.Null, err
			}
			if nth, err = nthArg("n", a, 4, 0, 1); err != nil {
				return datum.Null, err
			}
			global = nth == 0
			if len(a) > 5 {
				var g bool
				if opt, g, err = parseFlags(a[5].Str()); err != nil {
					return datum.Null, err
				}
				global = global || g && len(a) <= 4
			}
		}
		r, err := regexCharged(c, s, a[1].Str(), opt)
		if err != nil {
			return datum.Null, err
		}
		return replaceMatches(c, r, s, a[2].Str(), at, nth, global)
	}
}

// replaceMatches replaces match number nth, or all of them.
func replaceMatches(c *Ctx, r *regex, s, by string, at int, nth int64, global bool) (datum.Datum, error) {
	var out []byte
	done := 0
	count := int64(0)
	var err error
	budgetErr := r.each(c, s, at, func(m []int) bool {
		if count++; !global && count < nth {
			return true
		}
		out = append(out, s[done:m[0]]...)
		out = appendReplacement(out, by, s, m)
		done = m[1]
		if len(out) > maxAlloc {
			err = pgerr.New(pgerr.ProgramLimitExceeded, "requested length too large")
		}
		return global && err == nil
	})
	if err := cmp.Or(err, budgetErr); err != nil {
		return datum.Null, err
	}
	if err := spendBytes(c, int64(len(out))); err != nil {
		return datum.Null, err
	}
	if out == nil {
		return datum.Str(s), nil
	}
	return datum.Bytes(append(out, s[done:]...)), nil
}

// appendReplacement expands \1 to \9, \& and \\.
func appendReplacement(dst []byte, by, s string, m []int) []byte {
	for i := 0; i < len(by); i++ {
		if by[i] != '\\' || i+1 == len(by) {
			dst = append(dst, by[i])
			continue
		}
		switch c := by[i+1]; {
		case c >= '1' && c <= '9':
			if g := int(c - '0'); 2*g < len(m) && m[2*g] >= 0 {
				dst = append(dst, s[m[2*g]:m[2*g+1]]...)
			}
			i++
		case c == '&':
			dst = append(dst, s[m[0]:m[1]]...)
			i++
		case c == '\\':
			dst = append(dst, '\\')
			i++
		default:
			dst = append(dst, '\\')
		}
	}
	return dst
}

// split calls f with the pieces between matches; an empty match at the ends or
// directly behind another match separates nothing.
func (r *regex) split(c *Ctx, s string, f func(piece string) error) error {
	end := 0
	var err error
	budgetErr := r.each(c, s, 0, func(m []int) bool {
		if m[0] < len(s) && m[1] > end {
			err = f(s[end:m[0]])
			end = m[1]
		}
		return err == nil
	})
	if err := cmp.Or(err, budgetErr); err != nil {
		return err
	}
	return f(s[end:])
}

func splitter(c *Ctx, function string, a []datum.Datum) (*regex, error) {
	opt, err := flagsWithoutGlobal(function, a, 2)
	if err != nil {
		return nil, err
	}
	return regexCharged(c, a[0].Str(), a[1].Str(), opt)
}

func regexpSplitToArray(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	r, err := splitter(c, "regexp_split_to_array()", a)
	if err != nil {
		return datum.Null, err
	}
	var vals []datum.Datum
	err = r.split(c, a[0].Str(), func(p string) error {
		vals = append(vals, datum.Str(p))
		return nil
	})
	if err != nil {
		return datum.Null, err
	}
	return datum.MakeArray(datum.Text, vals), nil
}

func regexpSplitToTable(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
	r, err := splitter(c, "regexp_split_to_table()", a)
	if err != nil {
		return err
	}
	row := make([]datum.Datum, 1)
	return r.split(c, a[0].Str(), func(p string) error {
		row[0] = datum.Str(p)
		return emit(row)
	})
}

func regexpCount(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Str()
	at, err := startArg(s, a, 2)
	if err != nil {
		return datum.Null, err
	}
	opt, err := flagsWithoutGlobal("regexp_count()", a, 3)
	if err != nil {
		return datum.Null, err
	}
	r, err := regexCharged(c, s, a[1].Str(), opt)
	if err != nil {
		return datum.Null, err
	}
	n := int64(0)
	err = r.each(c, s, at, func([]int) bool { n++; return true })
	return datum.Int(n), err
}

// nthMatch finds match number n; group 0 is the whole of it.
func nthMatch(c *Ctx, r *regex, s string, at int, n int64) (found []int, err error) {
	err = r.each(c, s, at, func(m []int) bool {
		if n--; n == 0 {
			found = m
		}
		return n > 0
	})
	return found, err
}

func regexpInstr(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Str()
	at, err := startArg(s, a, 2)
	if err != nil {
		return datum.Null, err
	}
	n, err := nthArg("n", a, 3, 1, 1)
	if err != nil {
		return datum.Null, err
	}
	end := int64(0)
	if len(a) > 4 {
		if end = a[4].Int(); end != 0 && end != 1 {
			return datum.Null, badParameter("endoption", end)
		}
	}
	opt, err := flagsWithoutGlobal("regexp_instr()", a, 5)
	if err != nil {
		return datum.Null, err
	}
	group, err := nthArg("subexpr", a, 6, 0, 0)
	if err != nil {
		return datum.Null, err
	}
	r, err := regexCharged(c, s, a[1].Str(), opt)
	if err != nil {
		return datum.Null, err
	}
	m, err := nthMatch(c, r, s, at, n)
	if err != nil {
		return datum.Null, err
	}
	if m == nil || group > int64(r.groups) || m[2*group+end] < 0 {
		return datum.Int(0), nil
	}
	return datum.Int(int64(utf8.RuneCountInString(s[:m[2*group+end]])) + 1), nil
}

func regexpSubstr(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Str()
	at, err := startArg(s, a, 2)
	if err != nil {
		return datum.Null, err
	}
	n, err := nthArg("n", a, 3, 1, 1)
	if err != nil {
		return datum.Null, err
	}
	opt, err := flagsWithoutGlobal("regexp_substr()", a, 4)
	if err != nil {
		return datum.Null, err
	}
	group, err := nthArg("subexpr", a, 5, 0, 0)
	if err != nil {
		return datum.Null, err
	}
	r, err := regexCharged(c, s, a[1].Str(), opt)
	if err != nil {
		return datum.Null, err
	}
	m, err := nthMatch(c, r, s, at, n)
	if err != nil {
		return datum.Null, err
	}
	if m == nil || group > int64(r.groups) {
		return datum.Null, nil
	}
	return piece(s, m, int(group)), nil
}

var regexEvals = evalMap{
	"textregexeq": regexMatch(false, false), "textregexne": regexMatch(true, false),
	"texticregexeq": regexMatch(false, true), "texticregexne": regexMatch(true, true),
	"nameregexeq": regexMatch(false, false), "nameregexne": regexMatch(true, false),
	"nameicregexeq": regexMatch(false, true), "nameicregexne": regexMatch(true, true),
	"regexp_like": regexpLike, "regexp_like_no_flags": regexpLike,
	"regexp_match": regexpMatch, "regexp_match_no_flags": regexpMatch,
	"textregexsubstr": substringRegex, "substring(text,text,text)": func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		p, err := similarToRegex(a[1].Str(), a[2].Str())
		if err != nil {
			return datum.Null, err
		}
		return substringRegex(c, []datum.Datum{a[0], datum.Str(p)})
	},
	"textregexreplace_noopt": regexpReplace(false), "textregexreplace": regexpReplace(false),
	"textregexreplace_extended": regexpReplace(true), "textregexreplace_extended_no_flags": regexpReplace(true),
	"textregexreplace_extended_no_n": regexpReplace(true),
	"regexp_split_to_array":          regexpSplitToArray, "regexp_split_to_array_no_flags": regexpSplitToArray,
	"regexp_count": regexpCount, "regexp_count_no_start": regexpCount, "regexp_count_no_flags": regexpCount,
	"regexp_instr": regexpInstr, "regexp_instr_no_start": regexpInstr, "regexp_instr_no_n": regexpInstr,
	"regexp_instr_no_endoption": regexpInstr, "regexp_instr_no_flags": regexpInstr, "regexp_instr_no_subexpr": regexpInstr,
	"regexp_substr": regexpSubstr, "regexp_substr_no_start": regexpSubstr, "regexp_substr_no_n": regexpSubstr,
	"regexp_substr_no_flags": regexpSubstr, "regexp_substr_no_subexpr": regexpSubstr,
}

var regexSets = setMap{
	"regexp_matches": regexpMatches, "regexp_matches_no_flags": regexpMatches,
	"regexp_split_to_table": regexpSplitToTable, "regexp_split_to_table_no_flags": regexpSplitToTable,
}
