package builtin

import (
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// jsonPart is a piece of a json text: type json keeps its text as it was
// written, so parts of it are substrings.
type jsonPart struct {
	key string // of an object's pair, unescaped
	raw string
}

// jsonScanner walks over text that is known to be valid JSON.
type jsonScanner struct {
	s string
	i int
}

func (p *jsonScanner) space() {
	for p.i < len(p.s) && isBlank(p.s[p.i]) {
		p.i++
	}
}

// value skips one value and returns its text.
func (p *jsonScanner) value() string {
	p.space()
	start := p.i
	depth := 0
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case '"':
			p.str()
		case '{', '[':
			depth++
			p.i++
			continue
		case '}', ']':
			depth--
			p.i++
		case ',', ':', ' ', '\n', '\t', '\r':
			p.i++
			continue
		default:
			for p.i < len(p.s) && !strings.ContainsRune(",:]} \n\t\r", rune(p.s[p.i])) {
				p.i++
			}
		}
		if depth == 0 {
			break
		}
	}
	return p.s[start:p.i]
}

// str skips one string and returns it with its quotes.
func (p *jsonScanner) str() string {
	start := p.i
	for p.i++; p.s[p.i] != '"'; p.i++ {
		if p.s[p.i] == '\\' {
			p.i++
		}
	}
	p.i++
	return p.s[start:p.i]
}

// jsonKind is the first character of a json text, which tells what it is.
func jsonKind(s string) byte {
	s = strings.TrimLeft(s, " \n\t\r")
	if s == "" {
		return 0
	}
	return s[0]
}

func jsonTypeOf(s string) string {
	switch jsonKind(s) {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// jsonParts calls f for the pairs of an object or the elements of an array.
func jsonParts(s string, f func(p jsonPart) error) error {
	p := jsonScanner{s: s}
	p.space()
	object := p.s[p.i] == '{'
	p.i++
	for {
		p.space()
		if c := p.s[p.i]; c == '}' || c == ']' {
			return nil
		} else if c == ',' {
			p.i++
			continue
		}
		var part jsonPart
		if object {
			key, err := jsonUnquote(p.str())
			if err != nil {
				return err
			}
			part.key = key
			p.space()
			p.i++ // the colon
		}
		part.raw = p.value()
		if err := f(part); err != nil {
			return err
		}
	}
}

// jsonUnquote is the value of a string written in JSON.
func jsonUnquote(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s[1 : len(s)-1], nil
	}
	d, err := datum.ParseJSONB(s)
	if err != nil {
		return "", err
	}
	v, _ := datum.JSONBString(d)
	return v, nil
}

// jsonText is what ->> returns: strings unquoted, null as null.
func jsonText(raw string) (datum.Datum, error) {
	switch jsonKind(raw) {
	case 'n':
		return datum.Null, nil
	case '"':
		s, err := jsonUnquote(strings.Trim(raw, " \n\t\r"))
		return datum.Str(s), err
	}
	return datum.Str(raw), nil
}

// jsonField finds a key; of several equal ones the last counts.
func jsonField(s, key string) (raw string, ok bool, err error) {
	if jsonKind(s) != '{' {
		return "", false, nil
	}
	err = jsonParts(s, func(p jsonPart) error {
		if p.key == key {
			raw, ok = p.raw, true
		}
		return nil
	})
	return raw, ok, err
}

// jsonElement finds an element of an array; negative numbers count from its end.
func jsonElement(s string, n int64) (raw string, ok bool, err error) {
	if jsonKind(s) != '[' {
		return "", false, nil
	}
	var parts []string
	err = jsonParts(s, func(p jsonPart) error {
		parts = append(parts, p.raw)
		return nil
	})
	if n < 0 {
		n += int64(len(parts))
	}
	if err != nil || n < 0 || n >= int64(len(parts)) {
		return "", false, err
	}
	return parts[n], true, nil
}

// jsonResult turns a part into a datum: as it is, or as text.
func jsonResult(raw string, ok bool, err error, text bool) (datum.Datum, error) {
	switch {
	case err != nil || !ok:
		return datum.Null, err
	case text:
		return jsonText(raw)
	}
	return datum.Str(raw), nil
}

func jsonObjectField(text bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		raw, ok, err := jsonField(a[0].Str(), a[1].Str())
		return jsonResult(raw, ok, err, text)
	}
}

func jsonArrayElement(text bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		raw, ok, err := jsonElement(a[0].Str(), a[1].Int())
		return jsonResult(raw, ok, err, text)
	}
}

// pathIndex reads an element of a path as an array index.
func pathIndex(s string) (int64, bool) {
	d, err := datum.Int4.Parse(s, -1, &datum.ContractFormat)
	return d.Int(), err == nil
}

func jsonExtractPath(text bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		raw, ok := a[0].Str(), true
		var err error
		for e := range datum.ArrayElems(a[1]) {
			if e.IsNull() {
				return datum.Null, nil
			}
			switch jsonKind(raw) {
			case '{':
				raw, ok, err = jsonField(raw, e.Str())
			case '[':
				n, isInt := pathIndex(e.Str())
				if !isInt {
					return datum.Null, nil
				}
				raw, ok, err = jsonElement(raw, n)
			default:
				return datum.Null, nil
			}
			if err != nil || !ok {
				return datum.Null, err
			}
		}
		return jsonResult(raw, ok, err, text)
	}
}

func jsonMisuse(format string, args ...any) error {
	return pgerr.New(pgerr.InvalidParameterValue, format, args...)
}

func jsonArrayLength(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	switch jsonKind(a[0].Str()) {
	case '[':
	case '{':
		return datum.Null, jsonMisuse("cannot get array length of a non-array")
	default:
		return datum.Null, jsonMisuse("cannot get array length of a scalar")
	}
	n := int64(0)
	err := jsonParts(a[0].Str(), func(jsonPart) error { n++; return nil })
	return datum.Int(n), err
}

func jsonEach(function string, text bool) SetEval {
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		switch jsonKind(a[0].Str()) {
		case '{':
		case '[':
			return jsonMisuse("cannot deconstruct an array as an object")
		default:
			return jsonMisuse("cannot deconstruct a scalar")
		}
		row := make([]datum.Datum, 2)
		return jsonParts(a[0].Str(), func(p jsonPart) error {
			if err := c.Budget.Spend(1); err != nil {
				return err
			}
			row[0] = datum.Str(p.key)
			var err error
			if row[1], err = jsonResult(p.raw, true, nil, text); err != nil {
				return err
			}
			return emit(row)
		})
	}
}

func jsonArrayElements(function string, text bool) SetEval {
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		switch jsonKind(a[0].Str()) {
		case '[':
		case '{':
			return jsonMisuse("cannot call %s on a non-array", function)
		default:
			return jsonMisuse("cannot call %s on a scalar", function)
		}
		out := emitter(c, emit)
		return jsonParts(a[0].Str(), func(p jsonPart) error {
			v, err := jsonResult(p.raw, true, nil, text)
			if err != nil {
				return err
			}
			return out(v)
		})
	}
}

func jsonObjectKeys(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
	switch jsonKind(a[0].Str()) {
	case '{':
	case '[':
		return jsonMisuse("cannot call %s on an array", "json_object_keys")
	default:
		return jsonMisuse("cannot call %s on a scalar", "json_object_keys")
	}
	out := emitter(c, emit)
	return jsonParts(a[0].Str(), func(p jsonPart) error { return out(datum.Str(p.key)) })
}

// jsonStripNulls leaves out pairs whose value is null, at every level, and all
// white space.
func jsonStripNulls(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	b, err := appendStripped(nil, a[0].Str())
	return datum.Bytes(b), err
}

func appendStripped(dst []byte, s string) ([]byte, error) {
	kind := jsonKind(s)
	if kind != '{' && kind != '[' {
		return append(dst, strings.Trim(s, " \n\t\r")...), nil
	}
	dst = append(dst, kind)
	first := true
	err := jsonParts(s, func(p jsonPart) error {
		if kind == '{' && jsonKind(p.raw) == 'n' {
			return nil
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if kind == '{' {
			dst = append(datum.AppendJSONString(dst, p.key), ':')
		}
		var err error
		dst, err = appendStripped(dst, p.raw)
		return err
	})
	return append(dst, kind+2), err // ASCII: { and }, [ and ] are two apart
}

var jsonEvals = evalMap{
	"json_object_field": jsonObjectField(false), "json_object_field_text": jsonObjectField(true),
	"json_array_element": jsonArrayElement(false), "json_array_element_text": jsonArrayElement(true),
	"json_extract_path": jsonExtractPath(false), "json_extract_path_text": jsonExtractPath(true),
	"json_array_length": jsonArrayLength, "json_strip_nulls": jsonStripNulls,
	"json_typeof": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Str(jsonTypeOf(a[0].Str())), nil },
}

var jsonSets = setMap{
	"json_each": jsonEach("json_each", false), "json_each_text": jsonEach("json_each_text", true),
	"json_array_elements":      jsonArrayElements("json_array_elements", false),
	"json_array_elements_text": jsonArrayElements("json_array_elements_text", true),
	"json_object_keys":         jsonObjectKeys,
}
