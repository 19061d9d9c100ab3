package builtin

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
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

// numericToChar formats a numeric; integers come here too.
func numericToChar(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	f, err := parseNumFormat(a[1].Str())
	if err != nil {
		return datum.Null, err
	}
	s, err := f.numeric(a[0])
	return datum.Str(s), err
}

func (f *numFormat) numeric(d datum.Datum) (string, error) {
	special := !isFinite(d)
	if f.roman {
		r, err := datum.NumericRound(d, 0)
		if err != nil || special {
			return f.romanNumber(0), err
		}
		v, err := datum.NumericToInt64(r)
		if err != nil {
			v = 0
		}
		return f.romanNumber(v), nil
	}
	if f.eeee {
		return f.scientific(d, special), nil
	}
	var err error
	if f.isMulti && !special {
		power, err := datum.NumericPower(datum.NumericFromInt64(10), datum.NumericFromInt64(int64(f.multi)))
		if err != nil {
			return "", err
		}
		if d, err = datum.NumericMul(d, power); err != nil {
			return "", err
		}
	}
	if d, err = datum.NumericRound(d, int32(f.post)); err != nil {
		return "", err
	}
	s := datum.NumericText(d)
	negative := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	return f.writeNumber(s, negative), nil
}

// scientific writes d.ddde+XX with a blank or minus in front.
func (f *numFormat) scientific(d datum.Datum, special bool) string {
	if special {
		return " " + strings.Repeat("#", f.pre) + "." + strings.Repeat("#", f.post+4)
	}
	s := datum.NumericText(d)
	negative := strings.HasPrefix(s, "-")
	digits, exp := normalize(strings.TrimPrefix(s, "-"))
	digits, exp = roundDigits(digits, f.post+1, exp)
	out := " "
	if negative {
		out = "-"
	}
	out += digits[:1]
	if f.post > 0 {
		out += "." + digits[1:]
	}
	sign := "+"
	if exp < 0 {
		sign, exp = "-", -exp
	}
	if exp < 10 {
		sign += "0"
	}
	return out + "e" + sign + strconv.Itoa(exp)
}

// normalize splits a decimal into its significant digits and the exponent of
// the first one.
func normalize(s string) (digits string, exp int) {
	whole, frac, _ := strings.Cut(s, ".")
	digits = whole + frac
	exp = len(whole) - 1
	for len(digits) > 1 && digits[0] == '0' {
		digits = digits[1:]
		exp--
	}
	if digits == "0" {
		exp = 0
	}
	return digits, exp
}

// roundDigits rounds to n digits, half away from zero.
func roundDigits(digits string, n, exp int) (string, int) {
	if len(digits) <= n {
		return digits + strings.Repeat("0", n-len(digits)), exp
	}
	up := digits[n] >= '5'
	b := []byte(digits[:n])
	for i := n - 1; up && i >= 0; i-- {
		if b[i]++; b[i] > '9' {
			b[i] = '0'
		} else {
			up = false
		}
	}
	if up {
		return "1" + string(b[:n-1]), exp + 1
	}
	return string(b), exp
}

func intToChar(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	b := [2]datum.Datum{datum.NumericFromInt64(a[0].Int()), a[1]}
	return numericToChar(c, b[:])
}

// floatToChar formats as C's printf does, with no more digits than the type has.
func floatToChar(digits int) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		f, err := parseNumFormat(a[1].Str())
		if err != nil {
			return datum.Null, err
		}
		v := a[0].Float()
		if math.IsNaN(v) || isInf(v) || f.roman || f.eeee {
			s, err := f.numeric(datum.NumericFromFloat(v))
			return datum.Str(s), err
		}
		if f.isMulti {
			v = float64(v * math.Pow10(f.multi)) // a table: exact up to 10^22
		}
		whole := len(strconv.FormatFloat(math.Abs(v), 'f', 0, 64))
		if whole >= digits {
			f.post = 0
		} else {
			f.post = min(f.post, digits-whole)
		}
		s := strconv.FormatFloat(math.Abs(v), 'f', f.post, 64)
		return datum.Str(f.writeNumber(s, math.Signbit(v))), nil
	}
}

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
		if strings.HasPrefix(r.s, ",") {
			r.s = r.s[1:]
		}
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

var numFormatEvals = evalMap{
	"numeric_to_char": numericToChar, "int4_to_char": intToChar, "int8_to_char": intToChar,
	"float4_to_char": floatToChar(6), "float8_to_char": floatToChar(15), "numeric_to_number": toNumber,
}
