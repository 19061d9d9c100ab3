package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// windowFuncs are the window functions by name.
var windowFuncs = map[string]windowFunc{
	"row_number": func(_ *frame, it *windowIter, _ *windowState) (datum.Datum, error) {
		return datum.Int(int64(it.at) + 1), nil
	},
	"rank": func(_ *frame, it *windowIter, _ *windowState) (datum.Datum, error) {
		return datum.Int(int64(it.peers().from) + 1), nil
	},
	"dense_rank": func(_ *frame, it *windowIter, _ *windowState) (datum.Datum, error) {
		return datum.Int(int64(it.group) + 1), nil
	},
	"percent_rank": percentRank,
	"cume_dist": func(_ *frame, it *windowIter, _ *windowState) (datum.Datum, error) {
		return datum.Float(float64(it.peers().to) / float64(it.rows.n)), nil
	},
	"ntile": ntile,
	"lag": func(f *frame, it *windowIter, st *windowState) (datum.Datum, error) {
		return leadLag(f, it, st, false)
	},
	"lead": func(f *frame, it *windowIter, st *windowState) (datum.Datum, error) {
		return leadLag(f, it, st, true)
	},
	"first_value": func(f *frame, it *windowIter, st *windowState) (datum.Datum, error) {
		return frameValue(f, it, st, 1)
	},
	"last_value": func(f *frame, it *windowIter, st *windowState) (datum.Datum, error) {
		return frameValue(f, it, st, -1)
	},
	"nth_value": nthValue,
}

func percentRank(_ *frame, it *windowIter, _ *windowState) (datum.Datum, error) {
	if it.rows.n <= 1 {
		return datum.Float(0), nil
	}
	return datum.Float(float64(it.peers().from) / float64(it.rows.n-1)), nil
}

// ntile deals a partition out to buckets; the first rows%buckets of them get
// one row more. The number of buckets is that of the first row where it is not
// null; until then the result is null.
func ntile(f *frame, it *windowIter, st *windowState) (datum.Datum, error) {
	if st.bucket == 0 {
		d, err := st.call.args[0](f)
		if err != nil || d.IsNull() {
			return datum.Null, err
		}
		if d.Int() <= 0 {
			return datum.Null, pgerr.New(pgerr.InvalidArgumentForNtile, "argument of ntile must be greater than zero")
		}
		n := int64(it.rows.n)
		st.bucket, st.size, st.larger = 1, n/d.Int(), n%d.Int()
		if st.size == 0 {
			st.size, st.larger = 1, 0
		}
	}
	size := st.size
	if st.bucket <= st.larger {
		size++
	}
	if st.place == size {
		st.bucket, st.place = st.bucket+1, 0
	}
	st.place++
	return datum.Int(st.bucket), nil
}

// leadLag is lead and lag: (value [, offset [, default]]).
func leadLag(f *frame, it *windowIter, st *windowState, forward bool) (datum.Datum, error) {
	args, offset := st.call.args, int64(1)
	if len(args) > 1 {
		d, err := args[1](f)
		if err != nil || d.IsNull() {
			return datum.Null, err
		}
		offset = d.Int()
	}
	if !forward {
		offset = -offset
	}
	to := int64(it.at) + offset
	if to < 0 || to >= int64(it.rows.n) {
		if len(args) > 2 {
			return args[2](f)
		}
		return datum.Null, nil
	}
	it.load(f, int(to))
	return args[0](f)
}

// frameValue is the value of the n-th row of the frame, from 1; from its end if
// n is negative; null if there is none.
func frameValue(f *frame, it *windowIter, st *windowState, n int64) (datum.Datum, error) {
	pieces, err := it.framePieces(f)
	if err != nil {
		return datum.Null, err
	}
	if n < 0 {
		total := int64(0)
		for _, s := range pieces {
			total += int64(s.to - s.from)
		}
		n += total + 1
	}
	for _, s := range pieces {
		if size := int64(s.to - s.from); n > size {
			n -= size
			continue
		}
		if n < 1 {
			break
		}
		it.load(f, s.from+int(n)-1)
		return st.call.args[0](f)
	}
	return datum.Null, nil
}

func nthValue(f *frame, it *windowIter, st *windowState) (datum.Datum, error) {
	d, err := st.call.args[1](f)
	if err != nil || d.IsNull() {
		return datum.Null, err
	}
	if d.Int() <= 0 {
		return datum.Null, pgerr.New(pgerr.InvalidArgumentForNthValue, "argument of nth_value must be greater than zero")
	}
	return frameValue(f, it, st, d.Int())
}
