package sql

import (
	"errors"
	"io"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// copyInput is the data of COPY FROM as it arrives, in pieces of any size.
type copyInput struct {
	read  func() ([]byte, error)
	buf   []byte
	at    int // what is consumed
	ended bool
}

// maxCopyRow bounds one row of data: it is kept in memory.
const maxCopyRow = 256 << 20

// more appends the next piece; false at the end.
func (in *copyInput) more() (bool, error) {
	if in.ended {
		return false, nil
	}
	piece, err := in.read()
	if errors.Is(err, io.EOF) {
		in.ended = true
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if in.at > 0 {
		in.buf = in.buf[:copy(in.buf, in.buf[in.at:])]
		in.at = 0
	}
	if len(in.buf)+len(piece) > maxCopyRow {
		return false, pgerr.New(pgerr.ProgramLimitExceeded, "row of COPY data is larger than %d bytes", maxCopyRow)
	}
	in.buf = append(in.buf, piece...)
	return true, nil
}

// byte returns byte i from the present place; false if the data ends before.
func (in *copyInput) byte(i int) (byte, bool, error) {
	for in.at+i >= len(in.buf) {
		if ok, err := in.more(); !ok {
			return 0, false, err
		}
	}
	return in.buf[in.at+i], true, nil
}

// take consumes n bytes, all of which byte has seen.
func (in *copyInput) take(n int) []byte {
	b := in.buf[in.at : in.at+n]
	in.at += n
	return b
}

// drain reads to the end and drops what comes.
func (in *copyInput) drain() error {
	for {
		in.at = len(in.buf)
		if ok, err := in.more(); !ok {
			return err
		}
	}
}

// newline is the way in which lines end; the first line decides.
type newline uint8

const (
	unknownNewline newline = iota
	newlineLF
	newlineCR
	newlineCRLF
)

// lineReader cuts data of the text and CSV formats into lines
// (CopyReadLineText).
type lineReader struct {
	*copyOptions
	in    *copyInput
	style newline
	lines int64 // lines begun, those inside quoted values included
	done  bool  // the end marker was met
}

func (r *lineReader) bad(text, csv, textHint, csvHint string) error {
	if r.csv {
		return pgerr.New(pgerr.BadCopyFileFormat, "%s", csv).WithHint("%s", csvHint)
	}
	return pgerr.New(pgerr.BadCopyFileFormat, "%s", text).WithHint("%s", textHint)
}

func (r *lineReader) errCR() error {
	return r.bad("literal carriage return found in data", "unquoted carriage return found in data",
		`Use "\r" to represent carriage return.`, "Use quoted CSV field to represent carriage return.")
}

func (r *lineReader) errLF() error {
	return r.bad("literal newline found in data", "unquoted newline found in data",
		`Use "\n" to represent newline.`, "Use quoted CSV field to represent newline.")
}

// next returns a line without its end; ok is false behind the last one. The
// line is valid until the next call.
func (r *lineReader) next() (line []byte, ok bool, err error) {
	r.lines++
	if r.done {
		return nil, false, nil
	}
	quoted, escaped := false, false
	escape := r.escape
	if escape == r.quote {
		escape = 0
	}
	for i := 0; ; i++ {
		c, ok, err := r.in.byte(i)
		if err != nil {
			return nil, false, err
		}
		if !ok {
			if i == 0 {
				return nil, false, nil
			}
			return r.in.take(i), true, nil
		}
		if r.csv {
			if quoted && escape != 0 && c == escape {
				escaped = !escaped
			}
			if c == r.quote && !escaped {
				quoted = !quoted
			}
			if escape == 0 || c != escape {
				escaped = false
			}
			if quoted {
				if c == '\n' && r.style == newlineLF || c == '\r' && r.style != newlineLF {
					r.lines++
				}
				continue
			}
		}
		switch {
		case c == '\r':
			n, err := r.carriageReturn(i)
			if err != nil {
				return nil, false, err
			}
			return r.cut(i, n), true, nil
		case c == '\n':
			if r.style == newlineCR || r.style == newlineCRLF {
				return nil, false, r.errLF()
			}
			r.style = newlineLF
			return r.cut(i, 1), true, nil
		case c == '\\' && (!r.csv || i == 0):
			skip, end, err := r.backslash(i)
			switch {
			case err != nil:
				return nil, false, err
			case end:
				r.done = true
				line := append([]byte(nil), r.in.take(i)...)
				return line, i > 0, r.in.drain()
			case skip:
				i++
			}
		}
	}
}

// cut takes a line of n bytes and its end.
func (r *lineReader) cut(n, end int) []byte { return r.in.take(n + end)[:n] }

// carriageReturn returns how many bytes the line end at i has.
func (r *lineReader) carriageReturn(i int) (int, error) {
	switch r.style {
	case newlineLF:
		return 0, r.errCR()
	case newlineCR:
		return 1, nil
	}
	c, ok, err := r.in.byte(i + 1)
	switch {
	case err != nil:
		return 0, err
	case ok && c == '\n':
		r.style = newlineCRLF
		return 2, nil
	case r.style == newlineCRLF:
		return 0, r.errCR()
	}
	r.style = newlineCR
	return 1, nil
}

// backslash looks at what follows the backslash at i: skip tells that the next
// byte means nothing special, end that this is the end marker.
func (r *lineReader) backslash(i int) (skip, end bool, err error) {
	c, ok, err := r.in.byte(i + 1)
	if err != nil || !ok {
		return false, false, err
	}
	if c != '.' {
		return !r.csv, false, nil
	}
	corrupt := func(message string) (bool, bool, error) {
		if r.csv {
			return false, false, nil
		}
		return false, false, pgerr.New(pgerr.BadCopyFileFormat, "%s", message)
	}
	const otherStyle = "end-of-copy marker does not match previous newline style"
	j := i + 2
	if r.style == newlineCRLF {
		c, ok, err := r.in.byte(j)
		switch {
		case err != nil:
			return false, false, err
		case ok && c == '\n':
			return corrupt(otherStyle)
		case ok && c != '\r':
			return corrupt("end-of-copy marker corrupt")
		}
		j++
	}
	c, ok, err = r.in.byte(j)
	switch {
	case err != nil:
		return false, false, err
	case !ok, c != '\r' && c != '\n':
		return corrupt("end-of-copy marker corrupt")
	case r.style == newlineLF && c != '\n', r.style == newlineCRLF && c != '\n', r.style == newlineCR && c != '\r':
		return false, false, pgerr.New(pgerr.BadCopyFileFormat, otherStyle)
	}
	return false, true, nil
}
