package builtin

import (
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// toNumber reads a number by a pattern; what the pattern does not ask for is
// skipped.
func toNumber(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Str()
	if a[1].Str() == "" {
		return datum.Null, nil
	}
	f, err := parseNumFormat(a[1].Str())
	if err != nil {
		return datum.Null, err
	}
	if f.eeee {
		return datum.Null, pgerr.New(pgerr.FeatureNotSupported, "\"EEEE\" not supported for input")
	}
	if f.roman {
		return datum.Null, pgerr.New(pgerr.FeatureNotSupported, "\"RN\" not supported for input")
	}
	r := numReader{f: f, s: s}
	text, err := r.run()
	if err != nil {
		return datum.Null, err
	}
	d, err := datum.Numeric.Parse(text, int32((f.pre+f.multi+f.post)<<16|f.post+f.multi)+4, &datum.ContractFormat)
	if err != nil || !f.isMulti {
		return d, err
	}
	power, err := datum.NumericPower(datum.NumericFromInt64(10), datum.NumericFromInt64(int64(-f.multi)))
	if err != nil {
		return datum.Null, err
	}
	return datum.NumericMul(d, power)
}

// numReader collects the sign and the digits of an input.
type numReader struct {
	f        *numFormat
	s        string
	negative bool
	digits   strings.Builder
	point    bool
}

func (r *numReader) run() (string, error) {
	for _, n := range r.f.nodes {
		if r.s == "" {
			break
		}
		r.node(n)
	}
	r.sign() // a trailing one
	text := r.digits.String()
	if text == "" || text == "." {
		return "", pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", "numeric", " ")
	}
	if r.negative {
		text = "-" + text
	}
	return text, nil
}

// sign takes + - < or > from the front.
func (r *numReader) sign() {
	r.s = strings.TrimLeft(r.s, " ")
	if r.s == "" {
		return
	}
	switch r.s[0] {
	case '-', '<':
		r.negative = true
		r.s = r.s[1:]
	case '+', '>':
		r.s = r.s[1:]
	}
}

func (r *numReader) node(n numNode) {
	switch strings.ToUpper(n.key) {
	case "9", "0", ".", "D":
		r.sign()
		if r.s == "" {
			return
		}
		switch c := r.s[0]; {
		case c >= '0' && c <= '9':
			if n.key != "." && strings.ToUpper(n.key) != "D" {
				r.digits.WriteByte(c)
				r.s = r.s[1:]
			}
		case c == '.' && !r.point && r.f.decimal:
			r.digits.WriteByte('.')
			r.point = true
			r.s = r.s[1:]
			if n.key == "9" || n.key == "0" {
				r.node(n) // the place is still to be filled
			}
		}
	case ",", "G":
		r.s = strings.TrimPrefix(r.s, ",")
	case "MI", "PL", "SG", "S", "PR":
		r.sign()
	case "FM", "V", "B":
	case "L", "":
		// Not part of a number: skip what cannot be one.
		for range max(1, utf8.RuneCountInString(n.text)) {
			if r.s == "" || r.s[0] >= '0' && r.s[0] <= '9' || strings.IndexByte("+-.,", r.s[0]) >= 0 {
				return
			}
			_, size := utf8.DecodeRuneInString(r.s)
			r.s = r.s[size:]
		}
	case "TH":
		r.s = r.s[min(2, len(r.s)):]
	}
}
