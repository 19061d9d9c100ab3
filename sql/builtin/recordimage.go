package builtin

import (
	"bytes"
	"cmp"

	"github.com/tallystick/tallystick/sql/datum"
)

// compareImages orders records by the bytes of their fields, so that values that
// are equal but not the same (1.0 and 1.00) differ: what *= and its like do
// (record_image_cmp). Nulls come last.
func compareImages(a, b datum.Datum) int {
	types1, x := datum.RecordFields(a)
	types2, y := datum.RecordFields(b)
	for i := range min(len(x), len(y)) {
		switch nx, ny := x[i].IsNull(), y[i].IsNull(); {
		case nx && ny:
			continue
		case nx:
			return 1
		case ny:
			return -1
		}
		if c := compareImage(types1[i], types2[i], x[i], y[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

func compareImage(t1, t2 datum.OID, v, w datum.Datum) int {
	d := datum.ByOID(t1)
	if t1 != t2 || d == nil {
		if v.Inline() && w.Inline() {
			return cmp.Compare(uint64(v.Int()), uint64(w.Int()))
		}
		return bytes.Compare(v.Bytes(), w.Bytes())
	}
	if d.Fixed && !isFloat(d) { // passed by value: unsigned
		return cmp.Compare(uint64(v.Int()), uint64(w.Int()))
	}
	return bytes.Compare(d.AppendBinary(nil, v), d.AppendBinary(nil, w))
}

func imageTest(name string) Eval { return comparison(name, compareImages) }

var recordImageEvals = evalMap{
	"record_image_eq": imageTest("="), "record_image_ne": imageTest("<>"), "record_image_lt": imageTest("<"),
	"record_image_gt": imageTest(">"), "record_image_le": imageTest("<="), "record_image_ge": imageTest(">="),
	"btrecordimagecmp": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Int(int64(sign(compareImages(a[0], a[1])))), nil
	},
}
