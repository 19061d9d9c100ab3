package builtin

import (
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// Number patterns of to_char and to_number, after formatting.c. The locale is
// C: decimal point ".", group separator ",", no currency symbol.

// numNode is one element of a number pattern: a key word or literal text.
type numNode struct {
	key  string // "" for literal text
	text string
}

// numKeys in the order in which they are tried: longer ones first.
var numKeys = []string{"EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", "th", "rn", "B", "C", "D", "G", "L", "S", "V", "9", "0", ".", ","}

// lsign says where S puts the sign.
type lsign uint8

const (
	lsignNone lsign = iota
	lsignPre
	lsignPost
)

// numFormat is a parsed number pattern (NUMDesc).
type numFormat struct {
	nodes              []numNode
	pre, post          int // digits before and behind the decimal point
	multi              int // digits behind V
	zero               bool
	zeroStart, zeroEnd int
	preLsign           int // digits before S
	lsign              lsign

	decimal, fill, hasS, bracket, minus, plus, isMulti, roman, eeee bool
}

func numSyntax(format string, args ...any) error {
	return pgerr.New(pgerr.SyntaxError, format, args...)
}

func parseNumFormat(s string) (*numFormat, error) {
	f := &numFormat{}
	for s != "" {
		if s[0] == '"' || s[0] == '\\' && len(s) > 1 && s[1] == '"' {
			s = f.literal(s)
			continue
		}
		key := numKey(s)
		if key == "" {
			_, n := utf8.DecodeRuneInString(s)
			f.nodes = append(f.nodes, numNode{text: s[:n]})
			s = s[n:]
			continue
		}
		if err := f.add(key); err != nil {
			return nil, err
		}
		f.nodes = append(f.nodes, numNode{key: key})
		s = s[len(key):]
	}
	return f, nil
}

func numKey(s string) string {
	for _, k := range numKeys {
		if strings.HasPrefix(s, k) {
			return k
		}
		if len(s) >= len(k) && s[:len(k)] == strings.ToLower(k) {
			return s[:len(k)]
		}
	}
	return ""
}

// literal takes text in double quotes, or an escaped quote.
func (f *numFormat) literal(s string) string {
	if s[0] == '\\' {
		f.nodes = append(f.nodes, numNode{text: `"`})
		return s[2:]
	}
	text, rest := quotedText(s[1:])
	f.nodes = append(f.nodes, numNode{text: text})
	return rest
}

// quotedText reads up to the closing quote; a backslash takes the next character.
func quotedText(s string) (text, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// add accounts for one key word (NUMDesc_prepare).
func (f *numFormat) add(key string) error {
	k := strings.ToUpper(key)
	if f.eeee && k != "EEEE" {
		return numSyntax("\"EEEE\" must be the last pattern used")
	}
	switch k {
	case "9", "0":
		return f.digit(k == "0")
	case ".", "D":
		if f.decimal {
			return numSyntax("multiple decimal points")
		}
		if f.isMulti {
			return numSyntax("cannot use \"V\" and decimal point together")
		}
		f.decimal = true
	case "FM":
		f.fill = true
	case "S":
		return f.sign()
	case "MI", "PL", "SG":
		if f.hasS {
			return numSyntax("cannot use \"S\" and \"%s\" together", map[string]string{"MI": "MI", "PL": "PL", "SG": "SG"}[k])
		}
		f.minus = f.minus || k != "PL"
		f.plus = f.plus || k != "MI"
	case "PR":
		if f.hasS || f.plus || f.minus {
			return numSyntax("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together")
		}
		f.bracket = true
	case "RN":
		f.roman = true
	case "V":
		if f.decimal {
			return numSyntax("cannot use \"V\" and decimal point together")
		}
		f.isMulti = true
	case "EEEE":
		if f.eeee {
			return numSyntax("cannot use \"EEEE\" twice")
		}
		if f.fill || f.hasS || f.bracket || f.minus || f.plus || f.roman || f.isMulti {
			return pgerr.New(pgerr.SyntaxError, "\"EEEE\" is incompatible with other formats").
				WithDetail("\"EEEE\" may only be used together with digit and decimal point patterns.")
		}
		f.eeee = true
	}
	return nil
}

func (f *numFormat) digit(zero bool) error {
	if f.bracket {
		if zero {
			return numSyntax("\"0\" must be ahead of \"PR\"")
		}
		return numSyntax("\"9\" must be ahead of \"PR\"")
	}
	if zero {
		if !f.zero && !f.decimal {
			f.zero, f.zeroStart = true, f.pre+1
		}
		if f.decimal {
			f.post++
		} else {
			f.pre++
		}
		f.zeroEnd = f.pre + f.post
		return nil
	}
	switch {
	case f.isMulti:
		f.multi++
	case f.decimal:
		f.post++
	default:
		f.pre++
	}
	return nil
}

func (f *numFormat) sign() error {
	if f.hasS {
		return numSyntax("cannot use \"S\" twice")
	}
	if f.plus || f.minus || f.bracket {
		return numSyntax("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together")
	}
	f.hasS = true
	if f.decimal {
		f.lsign = lsignPost
	} else {
		f.lsign, f.preLsign = lsignPre, f.pre
	}
	return nil
}

// numWriter writes the digits of a number into the places of a pattern
// (NUM_processor and NUM_numpart_to_char).
type numWriter struct {
	f         *numFormat
	negative  bool
	number    string // digits, with a point if the pattern has places behind one
	at        int    // next digit
	curr      int    // places done
	count     int
	preSpaces int
	last      int // last relevant digit or point with FM; -1 = not used
	signDone  bool
	inNumber  bool
	lsign     lsign
	bracket   bool
	zeroStart int
	out       []byte
	ended     bool // the number ran out: PostgreSQL writes no more
}

// writeNumber formats digits, which already have the scale of the pattern.
func (f *numFormat) writeNumber(number string, negative bool) string {
	preLen := len(number)
	if i := strings.IndexByte(number, '.'); i >= 0 {
		preLen = i
	}
	w := numWriter{f: f, negative: negative, number: number, last: -1, lsign: f.lsign, bracket: f.bracket, zeroStart: f.zeroStart}
	switch pre := f.pre + f.multi; {
	case preLen < pre:
		w.preSpaces = pre - preLen
	case preLen > pre:
		w.number = strings.Repeat("#", pre) + "." + strings.Repeat("#", f.post)
	}
	w.start()
	for _, n := range f.nodes {
		w.node(n)
	}
	return string(w.out)
}

func (w *numWriter) start() {
	f := w.f
	if f.plus || f.minus {
		w.signDone = f.minus || !f.plus
	} else {
		if !w.negative && f.fill {
			w.bracket = false
		}
		w.signDone = !w.negative && f.fill && !f.hasS
		if w.lsign == lsignPre && f.pre == f.preLsign {
			w.lsign = lsignPost
		}
	}
	w.count = f.post + f.pre + f.multi - 1
	if f.fill && f.decimal {
		w.last = lastRelevant(w.number)
		if w.last >= 0 && f.zeroEnd > w.preSpaces {
			w.last = max(w.last, min(len(w.number)-1, f.zeroEnd-w.preSpaces))
		}
	}
	if !w.signDone && w.preSpaces == 0 {
		w.count++
	}
	if w.zeroStart > 0 {
		w.zeroStart--
	}
}

func lastRelevant(s string) int {
	i := strings.IndexByte(s, '.')
	if i < 0 {
		return -1
	}
	last := i
	for i++; i < len(s); i++ {
		if s[i] != '0' {
			last = i
		}
	}
	return last
}

func (w *numWriter) digitAt(i int) byte {
	if i >= 0 && i < len(w.number) {
		return w.number[i]
	}
	return 0
}

func (w *numWriter) put(c byte) {
	if !w.ended {
		w.out = append(w.out, c)
	}
}

func (w *numWriter) puts(s string) {
	for i := range len(s) {
		w.put(s[i])
	}
}

func (w *numWriter) node(n numNode) {
	switch strings.ToUpper(n.key) {
	case "":
		w.puts(n.text)
	case "9", "0", ".", "D":
		w.place(n.key == "0")
	case ",", "G":
		if w.inNumber {
			w.put(',')
		} else if !w.f.fill {
			w.put(' ')
		}
	case "L":
		w.put(' ')
	case "MI":
		if w.negative {
			w.put('-')
		} else if !w.f.fill {
			w.put(' ')
		}
	case "PL":
		if !w.negative {
			w.put('+')
		} else if !w.f.fill {
			w.put(' ')
		}
	case "SG":
		if w.negative {
			w.put('-')
		} else {
			w.put('+')
		}
	case "TH":
		if !w.negative && !w.f.decimal && w.digitAt(0) != '#' {
			w.puts(ordinal(w.number, n.key == "TH"))
		}
	}
}

// predecSpace: the zero before a decimal point is left blank.
func (w *numWriter) predecSpace() bool {
	return !w.f.zero && w.at == 0 && w.digitAt(0) == '0' && w.f.post != 0
}

func (w *numWriter) place(isZero bool) {
	f := w.f
	w.inNumber = false
	endsInPoint := w.last >= 0 && w.digitAt(w.last) == '.'
	if !w.signDone && (w.curr >= w.preSpaces || f.zero && w.zeroStart == w.curr) && (!w.predecSpace() || endsInPoint) {
		w.leadingSign()
	}
	switch {
	case w.curr < w.preSpaces && (w.zeroStart > w.curr || !f.zero):
		if !f.fill {
			w.put(' ')
		}
	case f.zero && w.curr < w.preSpaces && w.zeroStart <= w.curr:
		w.put('0')
		w.inNumber = true
	default:
		w.digit(isZero, endsInPoint)
	}
	end := w.count
	if w.preSpaces > 0 {
		end++
	}
	if f.decimal {
		end++
	}
	if w.last >= 0 && w.last == w.at {
		end = w.curr
	}
	if w.curr+1 == end {
		w.trailingSign()
	}
	w.curr++
}

func (w *numWriter) digit(isZero, endsInPoint bool) {
	switch c := w.digitAt(w.at); {
	case c == '.':
		w.put('.')
	case w.last >= 0 && w.at > w.last && !isZero:
	case w.predecSpace():
		if !w.f.fill {
			w.put(' ')
		} else if endsInPoint {
			w.put('0')
		}
	case c != 0:
		w.put(c)
		w.inNumber = true
	default:
		w.ended = true
	}
	if w.at < len(w.number) {
		w.at++
	}
}

func (w *numWriter) leadingSign() {
	switch {
	case w.f.hasS:
		if w.lsign == lsignPre {
			w.put(signChar(w.negative))
			w.signDone = true
		}
	case w.bracket:
		if w.negative {
			w.put('<')
		} else {
			w.put(' ')
		}
		w.signDone = true
	case !w.negative:
		if !w.f.fill {
			w.put(' ')
		}
		w.signDone = true
	default:
		w.put('-')
		w.signDone = true
	}
}

func (w *numWriter) trailingSign() {
	switch {
	case w.signDone && w.bracket:
		if w.negative {
			w.put('>')
		} else {
			w.put(' ')
		}
	case w.f.hasS && w.lsign == lsignPost:
		w.put(signChar(w.negative))
	}
}

func signChar(negative bool) byte {
	if negative {
		return '-'
	}
	return '+'
}

// ordinal is the English suffix of a number.
func ordinal(digits string, upper bool) string {
	n := len(digits)
	s := "th"
	if n > 0 && (n == 1 || digits[n-2] != '1') {
		switch digits[n-1] {
		case '1':
			s = "st"
		case '2':
			s = "nd"
		case '3':
			s = "rd"
		}
	}
	if upper {
		return strings.ToUpper(s)
	}
	return s
}

// romanNumber writes 1 to 3999; other numbers do not fit.
func (f *numFormat) romanNumber(v int64) string {
	s := strings.Repeat("#", 15)
	if v >= 1 && v <= 3999 {
		s = toRoman(v)
	}
	lower := false
	for _, n := range f.nodes {
		lower = lower || n.key == "rn"
	}
	if lower {
		s = strings.ToLower(s)
	}
	if f.fill {
		return s
	}
	return strings.Repeat(" ", 15-len(s)) + s
}

func toRoman(v int64) string {
	var b strings.Builder
	for _, r := range []struct {
		v int64
		s string
	}{
		{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"},
		{50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"},
	} {
		for ; v >= r.v; v -= r.v {
			b.WriteString(r.s)
		}
	}
	return b.String()
}
