package datum

// fieldKind is what a piece of date/time input looks like before it is known
// what it means (ParseDateTime in PostgreSQL's datetime.c).
type fieldKind uint8

const (
	fieldNumber  fieldKind = iota // digits, maybe a fraction
	fieldString                   // letters
	fieldDate                     // digits or letters joined by - / .
	fieldTime                     // digits joined by :
	fieldZone                     // a sign and digits
	fieldSpecial                  // a sign and letters
)

type dtField struct {
	kind fieldKind
	s    string // letters in lower case
}

const (
	maxDateFields = 25
	maxDateLen    = 200
)

func isAlpha(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }
func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }
func isPunct(c byte) bool { return c > ' ' && c < 0x7f && !isAlnum(c) }

// dtLexer cuts input into fields.
type dtLexer struct {
	s   string
	pos int
}

func (l *dtLexer) at(set func(byte) bool) bool { return l.pos < len(l.s) && set(l.s[l.pos]) }

func (l *dtLexer) is(c byte) bool { return l.pos < len(l.s) && l.s[l.pos] == c }

func (l *dtLexer) run(set func(byte) bool) {
	for l.at(set) {
		l.pos++
	}
}

// lexDateTime returns not ok for input that no date/time form has.
func lexDateTime(s string, fields []dtField) (out []dtField, ok bool) {
	if len(s) > maxDateLen {
		return nil, false
	}
	l := dtLexer{s: lower(s)}
	for l.pos < len(l.s) {
		c := l.s[l.pos]
		if isSpace(c) {
			l.pos++
			continue
		}
		if len(fields) == maxDateFields {
			return nil, false
		}
		start := l.pos
		switch {
		case isDigit(c):
			fields = append(fields, dtField{kind: l.number()})
		case c == '.':
			l.pos++
			l.run(isDigit)
			fields = append(fields, dtField{kind: fieldNumber})
		case isAlpha(c):
			fields = append(fields, dtField{kind: l.word()})
		case c == '+' || c == '-':
			kind, text, ok := l.signed()
			if !ok {
				return nil, false
			}
			fields = append(fields, dtField{kind, text})
			continue
		case isPunct(c):
			l.pos++
			continue
		default:
			return nil, false
		}
		fields[len(fields)-1].s = l.s[start:l.pos]
	}
	return fields, true
}

func (l *dtLexer) number() fieldKind {
	l.run(isDigit)
	switch {
	case l.is(':'):
		l.run(func(c byte) bool { return isDigit(c) || c == ':' || c == '.' })
		return fieldTime
	case l.is('-') || l.is('/') || l.is('.'):
		delim := l.s[l.pos]
		l.pos++
		if !l.at(isDigit) { // a month in letters, perhaps
			l.run(func(c byte) bool { return isAlnum(c) || c == delim })
			return fieldDate
		}
		l.run(isDigit)
		if l.is(delim) {
			l.run(func(c byte) bool { return isDigit(c) || c == delim })
			return fieldDate
		}
		if delim == '.' {
			return fieldNumber
		}
		return fieldDate
	}
	return fieldNumber
}

// word reads letters; punctuation after them makes a date with a month first or
// the name of a time zone.
func (l *dtLexer) word() fieldKind {
	start := l.pos
	l.run(isAlpha)
	date := l.is('-') || l.is('/') || l.is('.')
	if l.is('+') || l.at(isDigit) {
		_, known := dateWords[cutWord(l.s[start:l.pos])]
		date = !known
	}
	if !date {
		return fieldString
	}
	l.run(func(c byte) bool {
		return isAlnum(c) || c == '+' || c == '-' || c == '/' || c == '_' || c == '.' || c == ':'
	})
	return fieldDate
}

func (l *dtLexer) signed() (kind fieldKind, text string, ok bool) {
	sign := l.s[l.pos : l.pos+1]
	l.pos++
	l.run(isSpace)
	start := l.pos
	switch {
	case l.at(isDigit):
		kind = fieldZone
		l.run(func(c byte) bool { return isDigit(c) || c == ':' || c == '.' || c == '-' })
	case l.at(isAlpha):
		kind = fieldSpecial
		l.run(isAlpha)
	default:
		return 0, "", false
	}
	return kind, sign + l.s[start:l.pos], true
}

// lower maps A-Z only.
func lower(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// wordKind is what a word in a date or time means.
type wordKind uint8

const (
	wordNone wordKind = iota
	wordReserved
	wordMonth
	wordWeekday
	wordAMPM
	wordEra
	wordIgnore
	wordDST
	wordTimeMark // the T of ISO 8601
	wordJulian
	wordUnit // a unit that date input accepts as a word but never uses
)

// Values of reserved words.
const (
	resNow = iota + 1
	resToday
	resTomorrow
	resYesterday
	resZulu
	resEpoch
	resInfinity
	resNegInfinity
)

const (
	ampmNone = iota
	ampmAM
	ampmPM
	eraAD = 1
	eraBC = 2
)

type dtWord struct {
	kind  wordKind
	value int
}

// wordLen is how many letters of a word count (TOKMAXLEN).
const wordLen = 10

func cutWord(s string) string {
	if len(s) > wordLen {
		return s[:wordLen]
	}
	return s
}

var dateWords = map[string]dtWord{
	"now": {wordReserved, resNow}, "today": {wordReserved, resToday}, "tomorrow": {wordReserved, resTomorrow},
	"yesterday": {wordReserved, resYesterday}, "allballs": {wordReserved, resZulu}, "epoch": {wordReserved, resEpoch},
	"infinity": {wordReserved, resInfinity}, "-infinity": {wordReserved, resNegInfinity},

	"jan": {wordMonth, 1}, "january": {wordMonth, 1}, "feb": {wordMonth, 2}, "february": {wordMonth, 2},
	"mar": {wordMonth, 3}, "march": {wordMonth, 3}, "apr": {wordMonth, 4}, "april": {wordMonth, 4},
	"may": {wordMonth, 5}, "jun": {wordMonth, 6}, "june": {wordMonth, 6}, "jul": {wordMonth, 7}, "july": {wordMonth, 7},
	"aug": {wordMonth, 8}, "august": {wordMonth, 8}, "sep": {wordMonth, 9}, "sept": {wordMonth, 9},
	"september": {wordMonth, 9}, "oct": {wordMonth, 10}, "october": {wordMonth, 10}, "nov": {wordMonth, 11},
	"november": {wordMonth, 11}, "dec": {wordMonth, 12}, "december": {wordMonth, 12},

	"sun": {wordWeekday, 0}, "sunday": {wordWeekday, 0}, "mon": {wordWeekday, 1}, "monday": {wordWeekday, 1},
	"tue": {wordWeekday, 2}, "tues": {wordWeekday, 2}, "tuesday": {wordWeekday, 2}, "wed": {wordWeekday, 3},
	"weds": {wordWeekday, 3}, "wednesday": {wordWeekday, 3}, "thu": {wordWeekday, 4}, "thur": {wordWeekday, 4},
	"thurs": {wordWeekday, 4}, "thursday": {wordWeekday, 4}, "fri": {wordWeekday, 5}, "friday": {wordWeekday, 5},
	"sat": {wordWeekday, 6}, "saturday": {wordWeekday, 6},

	"am": {wordAMPM, ampmAM}, "pm": {wordAMPM, ampmPM}, "ad": {wordEra, eraAD}, "bc": {wordEra, eraBC},
	"at": {wordIgnore, 0}, "on": {wordIgnore, 0}, "dst": {wordDST, 3600}, "t": {wordTimeMark, 0},
	"j": {wordJulian, 0}, "jd": {wordJulian, 0}, "julian": {wordJulian, 0},
	"d": {wordUnit, 0}, "dow": {wordUnit, 0}, "doy": {wordUnit, 0}, "h": {wordUnit, 0}, "isodow": {wordUnit, 0},
	"isoyear": {wordUnit, 0}, "m": {wordUnit, 0}, "mm": {wordUnit, 0}, "s": {wordUnit, 0}, "y": {wordUnit, 0},
}
