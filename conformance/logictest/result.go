package main

import (
	"crypto/md5"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// value is one value of an answer, in PostgreSQL's text form.
type value struct {
	text string
	null bool
}

// show returns a value as a column of type I, R or T shows it.
func show(v value, as byte) string {
	switch {
	case v.null:
		return "NULL"
	case as == 'I':
		return integer(v.text)
	case as == 'R':
		f, err := strconv.ParseFloat(number(v.text), 64)
		if err != nil {
			return v.text
		}
		return strconv.FormatFloat(f, 'f', 3, 64)
	case v.text == "":
		return "(empty)"
	}
	b := []byte(v.text)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '@'
		}
	}
	return string(b)
}

// number is the text of a number, with 1 and 0 for PostgreSQL's t and f.
func number(s string) string {
	switch s {
	case "t":
		return "1"
	case "f":
		return "0"
	}
	return s
}

// integer drops what is behind the decimal point, as a program does that reads
// the column into an integer. A text that is no number stays, so that it differs.
func integer(s string) string {
	f, ok := new(big.Rat).SetString(number(s))
	if !ok {
		return s
	}
	return new(big.Int).Quo(f.Num(), f.Denom()).String()
}

// arrange returns the values of rows in the order that a query's record asks for.
func arrange(rows [][]string, order string) []string {
	if order == "rowsort" {
		slices.SortStableFunc(rows, slices.Compare[[]string])
	}
	values := slices.Concat(rows...)
	if order == "valuesort" {
		slices.Sort(values)
	}
	return values
}

// hashed is the line that stands for values.
func hashed(values []string) string {
	h := md5.New()
	for _, v := range values {
		io.WriteString(h, v)
		h.Write([]byte{'\n'})
	}
	return fmt.Sprintf("%d values hashing to %x", len(values), h.Sum(nil))
}

// matches tells whether values are the expected ones, written out or as a hash.
func matches(values, expected []string) bool {
	if len(expected) == 1 && strings.Contains(expected[0], " values hashing to ") {
		return expected[0] == hashed(values)
	}
	return slices.Equal(values, expected)
}

// result writes values as a script has them: more than limit as a hash, unless
// limit is 0.
func result(values []string, limit int) string {
	if limit > 0 && len(values) > limit {
		return hashed(values)
	}
	return strings.Join(values, "\n")
}
