package builtin

import (
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
)

// bindArrayToText implements array_to_string: elements of all dimensions in a
// row; nulls are left out unless there is a text for them.
func bindArrayToText(args []datum.Type, _ datum.Type) (Eval, error) {
	elem := elemOf(args[0])
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		if a[0].IsNull() || a[1].IsNull() {
			return datum.Null, nil
		}
		sep := a[1].Str()
		var b []byte
		n := 0
		for v := range datum.ArrayElems(a[0]) {
			if v.IsNull() && (len(a) < 3 || a[2].IsNull()) {
				continue
			}
			if n++; n > 1 {
				b = append(b, sep...)
			}
			if v.IsNull() {
				b = append(b, a[2].Str()...)
			} else {
				b = appendOut(b, elem, v, c.Format)
			}
		}
		return datum.Bytes(b), spendBytes(c, int64(len(b)))
	}, nil
}

// eachField splits a string as string_to_array and string_to_table do: a null
// separator splits into characters, an empty one not at all; fields equal to
// the null text become null.
func eachField(a []datum.Datum, f func(v datum.Datum) error) error {
	s := a[0].Str()
	if s == "" {
		return nil
	}
	field := func(s string) error {
		if len(a) == 3 && !a[2].IsNull() && a[2].Str() == s {
			return f(datum.Null)
		}
		return f(datum.Str(s))
	}
	if a[1].IsNull() {
		for s != "" {
			_, n := utf8.DecodeRuneInString(s)
			if err := field(s[:n]); err != nil {
				return err
			}
			s = s[n:]
		}
		return nil
	}
	sep := a[1].Str()
	if sep == "" {
		return field(s)
	}
	for {
		head, tail, found := strings.Cut(s, sep)
		if err := field(head); err != nil || !found {
			return err
		}
		s = tail
	}
}

func stringToArray(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	if a[0].IsNull() {
		return datum.Null, nil
	}
	if err := c.Budget.Spend(int64(len(a[0].Str())) / 16); err != nil {
		return datum.Null, err
	}
	var vals []datum.Datum
	err := eachField(a, func(v datum.Datum) error {
		vals = append(vals, v)
		return nil
	})
	if err != nil {
		return datum.Null, err
	}
	return datum.MakeArray(datum.Text, vals), nil
}

func stringToTable(_ *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
	if a[0].IsNull() {
		return nil
	}
	row := make([]datum.Datum, 1)
	return eachField(a, func(v datum.Datum) error {
		row[0] = v
		return emit(row)
	})
}

var arrayTextEvals = evalMap{"text_to_array": stringToArray, "text_to_array_null": stringToArray}

var arrayTextSets = setMap{"text_to_table": stringToTable, "text_to_table_null": stringToTable}
