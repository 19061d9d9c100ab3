package sql

import (
	"unsafe"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// copyField is one value of a line: its text, or null.
type copyField struct {
	text string
	null bool
}

// appendTextFields splits a line of the text format (CopyReadAttributesText).
// The texts refer to memory that belongs to them alone.
func (o *copyOptions) appendTextFields(dst []copyField, line []byte) []copyField {
	out := make([]byte, 0, len(line))
	i := 0
	for {
		start, from := i, len(out)
		last := true
		for i < len(line) {
			c := line[i]
			i++
			if c == o.delimiter {
				last = false
				break
			}
			if c == '\\' {
				if i == len(line) {
					break
				}
				c, i = unescape(line, i)
			}
			out = append(out, c)
		}
		end := i
		if !last {
			end--
		}
		f := copyField{text: view(out[from:])}
		f.null = string(line[start:end]) == o.null
		dst = append(dst, f)
		if last {
			return dst
		}
	}
}

// view is a string over bytes that nobody changes any more.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// unescape decodes what stands behind a backslash, at i < len(line).
func unescape(line []byte, i int) (c byte, next int) {
	c = line[i]
	i++
	switch c {
	case '0', '1', '2', '3', '4', '5', '6', '7':
		v := int(c - '0')
		for n := 0; n < 2 && i < len(line) && line[i] >= '0' && line[i] <= '7'; n++ {
			v = v<<3 + int(line[i]-'0')
			i++
		}
		return byte(v), i
	case 'x':
		v, n := 0, 0
		for n < 2 && i < len(line) && hexValue(line[i]) >= 0 {
			v = v<<4 + hexValue(line[i])
			i++
			n++
		}
		if n > 0 {
			return byte(v), i
		}
	case 'b':
		return '\b', i
	case 'f':
		return '\f', i
	case 'n':
		return '\n', i
	case 'r':
		return '\r', i
	case 't':
		return '\t', i
	case 'v':
		return '\v', i
	}
	return c, i
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// appendCSVFields splits a line of the CSV format (CopyReadAttributesCSV).
func (o *copyOptions) appendCSVFields(dst []copyField, line []byte) ([]copyField, error) {
	out := make([]byte, 0, len(line))
	i := 0
	for {
		start, from := i, len(out)
		sawQuote, last := false, true
		for i < len(line) {
			c := line[i]
			i++
			if c == o.delimiter {
				last = false
				break
			}
			if c != o.quote {
				out = append(out, c)
				continue
			}
			sawQuote = true
			var ok bool
			if out, i, ok = o.quotedPart(out, line, i); !ok {
				return nil, pgerr.New(pgerr.BadCopyFileFormat, "unterminated CSV quoted field")
			}
		}
		end := i
		if !last {
			end--
		}
		f := copyField{text: view(out[from:])}
		f.null = !sawQuote && string(line[start:end]) == o.null
		dst = append(dst, f)
		if last {
			return dst, nil
		}
	}
}

// quotedPart decodes from behind a quote to behind the quote that ends it.
func (o *copyOptions) quotedPart(out, line []byte, i int) ([]byte, int, bool) {
	for i < len(line) {
		c := line[i]
		i++
		if c == o.escape && i < len(line) && (line[i] == o.escape || line[i] == o.quote) {
			out = append(out, line[i])
			i++
			continue
		}
		if c == o.quote {
			return out, i, true
		}
		out = append(out, c)
	}
	return out, i, false
}
