package builtin

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// testdata/regex.txt holds random expressions over small alphabets with what
// PostgreSQL 15 makes of them, then all kinds of syntax; separated by tabs: expression, text, flags, all
// matches (groups separated by commas, ~ for null; or E and the SQLSTATE), and
// the text with every match in angle brackets (or the message).
func TestRegexAgainstPostgreSQL(t *testing.T) {
	name := "testdata/regex.txt"
	if other := os.Getenv("REGEX_CASES"); other != "" {
		name = other
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	cases, wrong := 0, 0
	for in.Scan() {
		part := strings.Split(strings.ReplaceAll(in.Text(), `\n`, "\n"), "\t")
		if len(part) != 5 {
			t.Fatalf("malformed case %q", in.Text())
		}
		cases++
		matches, marked := regexCase(part[0], part[1], part[2])
		if matches == part[3] && marked == part[4] {
			continue
		}
		if wrong++; wrong <= 30 {
			t.Errorf("%s in %q, flags %q: %s %s, PostgreSQL: %s %s", part[0], part[1], part[2], matches, marked, part[3], part[4])
		}
	}
	if cases < 1000 || in.Err() != nil {
		t.Fatalf("%d cases: %v", cases, in.Err())
	}
	if wrong > 0 {
		t.Errorf("%d of %d cases differ", wrong, cases)
	}
}

func regexCase(pattern, text, flags string) (matches, marked string) {
	fail := func(err error) (string, string) {
		e, ok := pgerr.From(err)
		if !ok {
			return "fault", err.Error()
		}
		return "E " + string(e.Code), e.Message
	}
	var all []string
	row := func(r []datum.Datum) error {
		var groups []string
		for _, d := range datum.ArrayValues(r[0]) {
			if d.IsNull() {
				groups = append(groups, "~")
			} else {
				groups = append(groups, d.Str())
			}
		}
		all = append(all, strings.Join(groups, ","))
		return nil
	}
	args := []datum.Datum{datum.Str(text), datum.Str(pattern), datum.Str("g" + flags)}
	if err := regexpMatches(&Ctx{}, args, row); err != nil {
		return fail(err)
	}
	if all == nil {
		all = []string{"-"}
	}
	d, err := regexpReplace(false)(&Ctx{}, []datum.Datum{args[0], args[1], datum.Str(`<\&>`), args[2]})
	if err != nil {
		return fail(err)
	}
	return strings.Join(all, ";"), d.Str()
}
