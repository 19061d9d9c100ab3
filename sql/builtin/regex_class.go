package builtin

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// The character classes as contents of a Go bracket expression.
var reClasses = map[string]string{
	"alnum": `\p{L}\p{Nd}\p{Nl}`, "alpha": `\p{L}\p{Nl}`, "digit": `0-9`,
	"lower": `\p{Ll}`, "upper": `\p{Lu}`, "space": `\t-\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}`,
	"blank": `\t \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{205f}\x{3000}`, "punct": `\p{P}\p{S}`, "xdigit": `0-9A-Fa-f`,
	"cntrl": `\p{Cc}\x{2028}\x{2029}`, "graph": `\p{L}\p{M}\p{N}\p{P}\p{S}`, "print": `\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}`,
	"word": `\p{L}\p{Nd}\p{Nl}_`, "ascii": `\x00-\x7f`,
}

func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nd, r) || unicode.Is(unicode.Nl, r)
}

var errBadEscape = "invalid escape \\ sequence"

// escape takes a backslash escape outside brackets.
func (t *reTranslator) escape() error {
	if len(t.in) < 2 {
		return regexError(errBadEscape)
	}
	c := t.in[1]
	switch c {
	case 'd', 'w', 's':
		t.take(2)
		t.emitAtom("["+reClasses[shorthand(c)]+"]", c != 's')
		return nil
	case 'D', 'W', 'S':
		t.take(2)
		t.emitAtom("[^"+reClasses[shorthand(c+'a'-'A')]+"]", false)
		return nil
	case 'A':
		t.looksBack = true
		return t.assertion(`\A`)
	case 'Z':
		return t.assertion(`\z`)
	case 'y', 'm', 'M', 'Y':
		return t.wordAssertion(c)
	}
	if c >= '1' && c <= '9' {
		return pgerr.NotBuilt("back references in regular expressions are not supported")
	}
	r, err := t.charEscape()
	if err != nil {
		return err
	}
	t.emitAtom(regexp.QuoteMeta(string(r)), isWordRune(r))
	return nil
}

func shorthand(c byte) string {
	switch c {
	case 'd':
		return "digit"
	case 'w':
		return "word"
	}
	return "space"
}

func (t *reTranslator) assertion(s string) error {
	t.take(2)
	t.out.WriteString(s)
	t.atom, t.atomWord = false, false
	return nil
}

// wordAssertion takes \y and \Y, and \m and \M where what stands beside them
// must be a word character, so that they mean the same as \y.
func (t *reTranslator) wordAssertion(c byte) error {
	t.looksBack = true
	if c == 'Y' {
		return t.assertion(`\B`)
	}
	beside := c == 'y' || c == 'M' && t.atomWord || c == 'm' && startsWithWord(t.in[2:])
	if !beside {
		return pgerr.NotBuilt("\\%c beside anything but a word character is not supported in regular expressions", c)
	}
	return t.assertion(`\b`)
}

// startsWithWord tells whether an expression begins with an atom that can only be
// a word character. A group is not looked into: it may be empty.
func startsWithWord(s string) bool {
	n := 2
	if !strings.HasPrefix(s, `\w`) && !strings.HasPrefix(s, `\d`) {
		r, size := utf8.DecodeRuneInString(s)
		if s == "" || !isWordRune(r) {
			return false
		}
		n = size
	}
	// An optional first character leaves open what comes first.
	return len(s) == n || strings.IndexByte("*?{", s[n]) < 0
}

// charEscape takes an escape that stands for one character.
func (t *reTranslator) charEscape() (rune, error) {
	c := t.in[1]
	hex := func(digits int, exact bool) (rune, error) {
		n := 2
		var v rune
		for n < len(t.in) && (digits == 0 || n < 2+digits) {
			d, err := hexNibble(t.in[n:])
			if err != nil {
				break
			}
			if v = v<<4 | rune(d); v > unicode.MaxRune {
				return 0, regexError(errBadEscape)
			}
			n++
		}
		if n == 2 || exact && n != 2+digits || !utf8.ValidRune(v) {
			return 0, regexError(errBadEscape)
		}
		t.take(n)
		return v, nil
	}
	switch c {
	case 'u':
		return hex(4, true)
	case 'U':
		return hex(8, true)
	case 'x':
		return hex(0, false)
	case '0':
		n, v := 2, rune(0)
		for ; n < len(t.in) && n < 4 && t.in[n] >= '0' && t.in[n] <= '7'; n++ {
			v = v<<3 | rune(t.in[n]-'0')
		}
		t.take(n)
		return v, nil
	case 'c':
		if len(t.in) < 3 {
			return 0, regexError(errBadEscape)
		}
		return rune(t.take(3)[2] & 31), nil
	}
	if i := strings.IndexByte("abBefnrtv", c); i >= 0 {
		t.take(2)
		return rune("\a\b\\\x1b\f\n\r\t\v"[i]), nil
	}
	r, n := utf8.DecodeRuneInString(t.in[1:])
	if r != '_' && isWordRune(r) {
		return 0, regexError(errBadEscape)
	}
	t.take(1 + n)
	return r, nil
}

// bracket takes a bracket expression.
func (t *reTranslator) bracket() error {
	for _, w := range []string{"[[:<:]]", "[[:>:]]"} {
		if strings.HasPrefix(t.in, w) {
			c := byte('m')
			if w[3] == '>' {
				c = 'M'
			}
			t.in = "  " + t.in[len(w):] // in the place of a two-byte escape
			return t.wordAssertion(c)
		}
	}
	t.take(1)
	var b strings.Builder
	b.WriteByte('[')
	if strings.HasPrefix(t.in, "^") {
		t.take(1)
		b.WriteByte('^')
		if t.opt.dotNoNL {
			b.WriteString(`\n`)
		}
	}
	for first := true; ; first = false {
		if t.in == "" {
			return regexError("brackets [] not balanced")
		}
		if t.in[0] == ']' && !first {
			t.take(1)
			break
		}
		if err := t.bracketItem(&b); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	t.emitAtom(b.String(), false)
	return nil
}

func (t *reTranslator) bracketItem(b *strings.Builder) error {
	if name, ok := strings.CutPrefix(t.in, "[:"); ok {
		name, _, ok := strings.Cut(name, ":]")
		class := reClasses[name]
		if !ok || class == "" {
			return regexError("invalid character class")
		}
		t.take(len(name) + 4)
		b.WriteString(class)
		return nil
	}
	if len(t.in) > 1 && t.in[0] == '\\' && strings.IndexByte("dws", t.in[1]) >= 0 {
		b.WriteString(reClasses[shorthand(t.take(2)[1])])
		return nil
	}
	if len(t.in) > 1 && t.in[0] == '\\' && strings.IndexByte("DWS", t.in[1]) >= 0 {
		return writeComplement(b, shorthand(t.take(2)[1]+'a'-'A'))
	}
	lo, err := t.bracketChar()
	if err != nil {
		return err
	}
	b.WriteString(classChar(lo))
	if len(t.in) < 2 || t.in[0] != '-' || t.in[1] == ']' {
		return nil
	}
	t.take(1)
	hi, err := t.bracketChar()
	if err != nil {
		return err
	}
	if hi < lo {
		return regexError("invalid character range")
	}
	b.WriteByte('-')
	b.WriteString(classChar(hi))
	if len(t.in) > 1 && t.in[0] == '-' && t.in[1] != ']' {
		return regexError("invalid character range")
	}
	return nil
}

// writeComplement writes all characters that are not in a class.
func writeComplement(b *strings.Builder, class string) error {
	re, err := syntax.Parse("[^"+reClasses[class]+"]", syntax.Perl|syntax.UnicodeGroups)
	if err != nil {
		return goRegexError(err)
	}
	for i := 0; i < len(re.Rune); i += 2 {
		fmt.Fprintf(b, `\x{%x}-\x{%x}`, re.Rune[i], re.Rune[i+1])
	}
	return nil
}

// bracketChar takes one character: itself, escaped, or as [.x.] or [=x=].
func (t *reTranslator) bracketChar() (rune, error) {
	if t.in[0] == '\\' {
		if len(t.in) < 2 || strings.IndexByte("DWSAZmMyY", t.in[1]) >= 0 {
			return 0, regexError(errBadEscape)
		}
		return t.charEscape()
	}
	for _, kind := range []string{".", "="} {
		if rest, ok := strings.CutPrefix(t.in, "["+kind); ok {
			name, _, ok := strings.Cut(rest, kind+"]")
			r, known := collatingElement(name)
			if !ok || !known {
				return 0, regexError("invalid collating element")
			}
			t.take(4 + len(name))
			return r, nil
		}
	}
	r, n := utf8.DecodeRuneInString(t.in)
	t.take(n)
	return r, nil
}

// The names of characters that are no characters themselves, in the portable
// character set of POSIX.
var collatingNames = map[string]rune{
	"NUL": 0, "SOH": 1, "STX": 2, "ETX": 3, "EOT": 4, "ENQ": 5, "ACK": 6, "BEL": 7, "alert": 7, "BS": 8, "backspace": 8,
	"HT": 9, "tab": 9, "LF": 10, "newline": 10, "VT": 11, "vertical-tab": 11, "FF": 12, "form-feed": 12,
	"CR": 13, "carriage-return": 13, "SO": 14, "SI": 15, "DLE": 16, "DC1": 17, "DC2": 18, "DC3": 19, "DC4": 20,
	"NAK": 21, "SYN": 22, "ETB": 23, "CAN": 24, "EM": 25, "SUB": 26, "ESC": 27, "IS4": 28, "FS": 28, "IS3": 29, "GS": 29,
	"IS2": 30, "RS": 30, "IS1": 31, "US": 31, "space": ' ', "exclamation-mark": '!', "quotation-mark": '"',
	"number-sign": '#', "dollar-sign": '$', "percent-sign": '%', "ampersand": '&', "apostrophe": '\'',
	"left-parenthesis": '(', "right-parenthesis": ')', "asterisk": '*', "plus-sign": '+', "comma": ',',
	"hyphen": '-', "hyphen-minus": '-', "period": '.', "full-stop": '.', "slash": '/', "solidus": '/',
	"zero": '0', "one": '1', "two": '2', "three": '3', "four": '4', "five": '5', "six": '6', "seven": '7', "eight": '8', "nine": '9',
	"colon": ':', "semicolon": ';', "less-than-sign": '<', "equals-sign": '=', "greater-than-sign": '>',
	"question-mark": '?', "commercial-at": '@', "left-square-bracket": '[', "backslash": '\\', "reverse-solidus": '\\',
	"right-square-bracket": ']', "circumflex": '^', "circumflex-accent": '^', "underscore": '_', "low-line": '_',
	"grave-accent": '`', "left-brace": '{', "left-curly-bracket": '{', "vertical-line": '|',
	"right-brace": '}', "right-curly-bracket": '}', "tilde": '~', "DEL": 127,
}

// collatingElement is the character that stands in [. .] or [= =].
func collatingElement(name string) (rune, bool) {
	if r, n := utf8.DecodeRuneInString(name); n > 0 && n == len(name) {
		return r, true
	}
	r, ok := collatingNames[name]
	return r, ok
}

// classChar quotes a character for a Go bracket expression.
func classChar(r rune) string {
	if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) && r > ' ' && r < 0x7f {
		return `\` + string(r)
	}
	return string(r)
}
