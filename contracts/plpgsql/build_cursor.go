package plpgsql

import (
	"math"
	"slices"
	"strconv"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// openCursor is an open cursor of a call. Cursors end with the call that opened
// them.
type openCursor struct {
	name string
	rows rows
}

// closeCursors closes the cursors that were opened last, down to a number.
func (fr *frame) closeCursors(keep int) {
	for i := len(fr.cursors) - 1; i >= keep; i-- {
		fr.cursors[i].rows.cursor.Close()
		fr.cursors[i] = nil
	}
	if keep < len(fr.cursors) {
		fr.cursors = fr.cursors[:keep]
	}
}

func (fr *frame) cursor(info *varInfo) (int, error) {
	d := fr.vars[info.at]
	if d.IsNull() {
		return 0, pgerr.New(pgerr.NullValueNotAllowed, "cursor variable \"%s\" is null", info.v.name)
	}
	for i, c := range fr.cursors {
		if c.name == d.Str() {
			return i, nil
		}
	}
	return 0, pgerr.New(pgerr.InvalidCursorName, "cursor \"%s\" does not exist", d.Str())
}

// claim gives a cursor that is about to be opened its name.
func (fr *frame) claim(info *varInfo) (string, error) {
	d := fr.vars[info.at]
	if d.IsNull() {
		fr.portals++
		d = datum.Str("<unnamed portal " + strconv.Itoa(fr.portals) + ">")
		fr.vars[info.at] = d
	}
	for _, c := range fr.cursors {
		if c.name == d.Str() {
			return "", pgerr.New(pgerr.DuplicateCursor, "cursor \"%s\" already in use", d.Str())
		}
	}
	return d.Str(), nil
}

// cursorQuery makes the site of a bound cursor's query.
func (b *builder) cursorQuery(v *variable) *site {
	if s, ok := b.bound[v]; ok {
		return s
	}
	if b.bound == nil {
		b.bound = map[*variable]*site{}
	}
	s := b.site(v.cursor.query, datum.Type{})
	b.bound[v] = s
	return s
}

// arguments makes the assignments of a bound cursor's arguments.
func (b *builder) cursorArguments(v *variable, args []*expr) func(fr *frame) error {
	var sites []*site
	var at []int
	for i, a := range args {
		info := b.p.vars[v.cursor.args[i].id]
		if info.rec >= 0 {
			b.fail(pgerr.NotBuilt("cursor arguments of row types are not supported"))
			continue
		}
		sites, at = append(sites, b.site(a, info.typ)), append(at, info.at)
	}
	vals := len(sites)
	return func(fr *frame) error {
		if vals == 0 {
			return nil
		}
		got := make([]datum.Datum, vals)
		for i, s := range sites {
			var err error
			if got[i], err = s.eval(fr); err != nil {
				return err
			}
		}
		for i, d := range got {
			fr.vars[at[i]] = d
		}
		return nil
	}
}

// openBound opens the query of a bound cursor.
func (fr *frame) openBound(q *site, name string) (*openCursor, error) {
	pl, err := q.ready(fr)
	if err != nil {
		return nil, err
	}
	pl.bring(fr)
	c := &openCursor{name: name, rows: rows{cols: pl.cols, place: func(err error) error { return q.placed(err, 0) }}}
	if err := fr.openRows(pl.prog, slices.Clone(fr.vars), &c.rows); err != nil {
		return nil, err
	}
	fr.cursors = append(fr.cursors, c)
	return c, nil
}

func (b *builder) open(s *openStmt) runFunc {
	info := b.p.vars[s.cursor.id]
	switch {
	case s.cursor.cursor != nil:
		q, args := b.cursorQuery(s.cursor), b.cursorArguments(s.cursor, s.args)
		return func(fr *frame) (flow, error) {
			name, err := fr.claim(info)
			if err == nil {
				err = args(fr)
			}
			if err == nil {
				_, err = fr.openBound(q, name)
			}
			return goOn, err
		}
	case s.dyn:
		d := b.dynamic(s.query, s.using)
		return func(fr *frame) (flow, error) {
			text, prog, params, err := d.prepare(fr)
			if err != nil {
				return goOn, err
			}
			name, err := fr.claim(info)
			if err != nil {
				return goOn, err
			}
			c := &openCursor{name: name, rows: rows{place: func(err error) error { return inSQL(err, "SQL statement", text, 0, 0) }}}
			if err := fr.openRows(prog, params, &c.rows); err != nil {
				return goOn, err
			}
			c.rows.cols = rowTypeOf(prog.Plan().Columns)
			fr.cursors = append(fr.cursors, c)
			return goOn, nil
		}
	}
	q := b.site(s.query, datum.Type{})
	return func(fr *frame) (flow, error) {
		name, err := fr.claim(info)
		if err == nil {
			_, err = fr.openBound(q, name)
		}
		return goOn, err
	}
}

func (b *builder) forCursor(s *forCursorStmt) runFunc {
	info := b.p.vars[s.cursor.id]
	q, args := b.cursorQuery(s.cursor), b.cursorArguments(s.cursor, s.args)
	in := &intoProg{rec: b.p.vars[s.v.id]}
	b.checkInto(q, in)
	body, label, found := b.list(s.body), s.label, b.found()
	return func(fr *frame) (flow, error) {
		unnamed := fr.vars[info.at].IsNull()
		name, err := fr.claim(info)
		if err == nil {
			err = args(fr)
		}
		if err != nil {
			return goOn, err
		}
		c, err := fr.openBound(q, name)
		if err != nil {
			return goOn, err
		}
		fl, err := fr.eachRow(&c.rows, in, body, label, found)
		if i := slices.Index(fr.cursors, c); i >= 0 {
			fr.cursors = slices.Delete(fr.cursors, i, i+1)
		}
		if unnamed {
			fr.vars[info.at] = datum.Null
		}
		return fl, err
	}
}

func (b *builder) fetch(s *fetchStmt) runFunc {
	info, found := b.p.vars[s.cursor.id], b.found()
	count := b.optional(s.count, datum.T(datum.Int8))
	in := b.into(s.into)
	if in != nil {
		b.checkUnknown(in)
	}
	all := s.all
	return func(fr *frame) (flow, error) {
		i, err := fr.cursor(info)
		if err != nil {
			return goOn, err
		}
		r := &fr.cursors[i].rows
		if in != nil {
			return goOn, fr.fetchInto(r, in, found)
		}
		n := int64(1)
		if count != nil {
			if n, err = fr.bound(count, "relative or absolute cursor position is null"); err != nil {
				return goOn, err
			}
			if n < 0 {
				return goOn, pgerr.NotBuilt("moving a cursor backward is not supported")
			}
		}
		if all {
			n = math.MaxInt64
		}
		moved := int64(0)
		for ; moved < n; moved++ {
			if err := fr.spend(); err != nil {
				return goOn, err
			}
			row, err := r.next()
			if err != nil {
				return goOn, err
			}
			if row == nil {
				break
			}
		}
		fr.rowCount = moved
		fr.setFound(found, moved > 0)
		return goOn, nil
	}
}

func (fr *frame) fetchInto(r *rows, in *intoProg, found int) error {
	row, err := r.next()
	if err != nil {
		return err
	}
	casts, err := in.castsFor(fr.p, r.cols)
	if err != nil {
		return err
	}
	fr.rowCount = 0
	if row != nil {
		fr.rowCount = 1
	}
	fr.setFound(found, row != nil)
	return in.move(fr, r.cols, casts, row)
}

func (b *builder) closeCursor(s *closeStmt) runFunc {
	info := b.p.vars[s.cursor.id]
	return func(fr *frame) (flow, error) {
		i, err := fr.cursor(info)
		if err != nil {
			return goOn, err
		}
		fr.cursors[i].rows.cursor.Close()
		fr.cursors = slices.Delete(fr.cursors, i, i+1)
		return goOn, nil
	}
}
