package builtin

import (
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// likeOracle is the definition of LIKE, in exponential time.
func likeOracle(t, p []rune) bool {
	if len(p) == 0 {
		return len(t) == 0
	}
	switch p[0] {
	case '%':
		return likeOracle(t, p[1:]) || len(t) > 0 && likeOracle(t[1:], p)
	case '_':
		return len(t) > 0 && likeOracle(t[1:], p[1:])
	case '\\':
		p = p[1:]
	}
	return len(t) > 0 && t[0] == p[0] && likeOracle(t[1:], p[1:])
}

func TestLikeAgainstOracle(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	word := func(alphabet []string, n int) string {
		var b strings.Builder
		for range rng.Intn(n) {
			b.WriteString(alphabet[rng.Intn(len(alphabet))])
		}
		return b.String()
	}
	for range 20000 {
		text := word([]string{"a", "b", "é", "%"}, 8)
		pattern := word([]string{"a", "b", "é", "%", "_", `\%`, `\_`, `\a`}, 7)
		r, err := matchLike(text, pattern, true)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r == likeTrue, likeOracle([]rune(text), []rune(pattern)); got != want {
			t.Fatalf("%q LIKE %q: got %v, want %v", text, pattern, got, want)
		}
	}
}

// TestTranscendentalExact covers values where PostgreSQL's answers, which come from the C
// library, are not the correctly rounded ones.
func TestTranscendentalExact(t *testing.T) {
	c := &Ctx{Format: &datum.ContractFormat}
	for expr, want := range map[string]string{
		"cbrt(float8 '27')":   "3",
		"cbrt(float8 '-2')":   "-1.2599210498948732", // 1.25992104989487316...
		"sind(float8 '45')":   "0.7071067811865476",  // 0.70710678118654752...
		"acosh(float8 '2')":   "1.3169578969248168",  // 1.31695789692481670...
		"atanh(float8 '0.5')": "0.5493061443340549",  // 0.54930614433405484...
	} {
		if got := evalLine(c, expr); got != "double precision | "+want {
			t.Errorf("%s = %s, want %s", expr, got, want)
		}
	}
}

func FuzzRegex(f *testing.F) {
	for _, p := range []string{"a+b", "(?i)x", "[[:alpha:]_]+", `\mfoo\M`, "***=a|b", "(a|ab)(c|bcd)", "a{2,3}?", "[^]a-]", `\u00e9\x41`, "(?x)a b # c"} {
		f.Add("aab foo", p)
	}
	f.Fuzz(func(t *testing.T, text, pattern string) {
		if len(text)+len(pattern) > 200 || !utf8.ValidString(text) || !utf8.ValidString(pattern) {
			t.Skip()
		}
		r, err := compileRegex(pattern, reOptions{})
		if err != nil {
			if _, ok := pgerr.From(err); !ok {
				t.Fatalf("%q: %v", pattern, err)
			}
			return
		}
		last := -1
		err = r.each(&Ctx{}, text, 0, func(m []int) bool {
			if m[0] < last || m[1] < m[0] || m[1] > len(text) || !utf8.ValidString(text[m[0]:m[1]]) {
				t.Fatalf("%q in %q: match %v after %d", pattern, text, m, last)
			}
			last = m[1]
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzFormats(f *testing.F) {
	f.Add("FM999,990.00PR", "YYYY-MM-DD HH24:MI", "2020-01-01 10:00", int64(12345))
	f.Add("S9.99EEEE", `"x"DDth FMMonth`, "1st March", int64(-1))
	f.Add("RN", "IYYY-IW-ID CC J Q", "2020-10-4", int64(0))
	f.Fuzz(func(t *testing.T, number, date, input string, v int64) {
		if len(number)+len(date)+len(input) > 200 {
			t.Skip()
		}
		c := &Ctx{Format: &datum.ContractFormat, Budget: &Budget{Left: 1 << 20}}
		for _, x := range []struct {
			eval Eval
			args []datum.Datum
		}{
			{intToChar, []datum.Datum{datum.Int(v), datum.Str(number)}},
			{floatToChar(15), []datum.Datum{datum.Float(float64(v) / 7), datum.Str(number)}},
			{timestampToChar, []datum.Datum{datum.Int(v % (1 << 50)), datum.Str(date)}},
			{toNumber, []datum.Datum{datum.Str(input), datum.Str(number)}},
			{toDate, []datum.Datum{datum.Str(input), datum.Str(date)}},
			{toTimestampText, []datum.Datum{datum.Str(input), datum.Str(date)}},
			{sizeBytes, []datum.Datum{datum.Str(input)}},
			{similarToEscape, []datum.Datum{datum.Str(input)}},
		} {
			if _, err := x.eval(c, x.args); err != nil {
				if _, ok := pgerr.From(err); !ok {
					t.Fatal(err)
				}
			}
		}
	})
}
