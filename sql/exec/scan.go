package exec

import (
	"bytes"
	"fmt"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// scanProg is a compiled scan of a stored table.
type scanProg struct {
	table    *catalog.Table
	layout   *catalog.Layout
	index    int // position in table.Indexes
	keys     []catalog.IndexKey
	indexEnd []byte // end of the whole index
	decoder  *datum.RowDecoder
	sys      plan.SysSlots
	hasSys   bool
	ranges   []rangeProg
	policy   evalFunc // before filter
	filter   evalFunc
	reverse  bool
	// existence tells that the result depends on nothing but which keys are
	// live: only columns of the primary key are read, and only such whose
	// values are determined by their key.
	existence bool
	// copies tells that a wanted column may refer to the bytes of the stored
	// row, which a storage iterator takes back at its next step.
	copies bool

	provenance         bool
	fromBlock, toBlock evalFunc
	// all decodes complete rows into the scratch places from allAt on, for
	// provenance through a secondary index.
	all   *datum.RowDecoder
	allAt int
}

func (c *compiler) scan(n *plan.Scan) (nodeProg, error) {
	c.guard(n)
	l, err := c.layout(n.Table)
	if err != nil {
		return nil, err
	}
	p := &scanProg{table: n.Table, layout: l, index: l.Position(n.Index), keys: n.Index.Keys,
		sys: n.Sys, reverse: n.Reverse, provenance: n.Provenance}
	if p.index < 0 {
		return nil, fmt.Errorf("exec: index %s does not belong to table %s", n.Index.Name, n.Table.Name)
	}
	p.indexEnd = rwset.PrefixEnd(l.IndexPrefix(p.index))
	p.decoder = l.Decoder(n.Slots)
	p.existence = p.index == 0
	for i, slot := range n.Slots {
		if slot < 0 {
			continue
		}
		t := l.Types()[i]
		p.copies = p.copies || !t.Fixed
		p.existence = p.existence && keyDetermines(t) && hasColumn(n.Table.Primary(), i)
	}
	s := n.Sys
	c.fills.add(n.Slots...)
	c.fills.add(s.Xmin, s.Xmax, s.CreatorBlock, s.DeleterBlock, s.TableOID, s.Ctid)
	p.hasSys = max(s.Xmin, s.Xmax, s.CreatorBlock, s.DeleterBlock, s.TableOID, s.Ctid) >= 0
	p.existence = p.existence && max(s.Xmin, s.CreatorBlock) < 0
	if p.ranges, err = c.ranges(n, l, p.index); err != nil {
		return nil, err
	}
	if p.policy, err = c.optional(n.Policy); err != nil {
		return nil, err
	}
	if p.filter, err = c.optional(n.Filter); err != nil {
		return nil, err
	}
	if p.fromBlock, err = c.optional(n.FromBlock); err != nil {
		return nil, err
	}
	if p.toBlock, err = c.optional(n.ToBlock); err != nil {
		return nil, err
	}
	if p.provenance {
		if p.reverse {
			return nil, pgerr.NotBuilt("backward scans of all versions of a table are not supported")
		}
		slots := make([]int, len(n.Table.Columns))
		p.allAt = c.scratch(len(slots))
		for i := range slots {
			slots[i] = i
		}
		p.all = l.Decoder(slots)
	}
	return p, nil
}

// keyDetermines tells that equal keys of the type mean identical values, which
// is not so for numeric (1.0 and 1.00) and floats (0 and -0).
func keyDetermines(t datum.Type) bool {
	switch t.Root().Desc {
	case datum.BoolType, datum.Int2, datum.Int4, datum.Int8, datum.Text, datum.VarChar, datum.Bytea,
		datum.Date, datum.Timestamp, datum.TimestampTZ, datum.UUID:
		return true
	}
	return false
}

func hasColumn(idx *catalog.Index, column int) bool {
	for _, k := range idx.Keys {
		if k.Column == column {
			return true
		}
	}
	return false
}

func (p *scanProg) iter() rowIter {
	if p.provenance {
		return &provenanceIter{p: p}
	}
	return &scanIter{p: p}
}

// scanIter reads the live rows of a table, span after span.
type scanIter struct {
	p     *scanProg
	set   spanSet
	at    int        // next span, in the direction of the scan
	store *mvcc.Iter // the span being scanned, or nil
	key   []byte     // scratch for primary keys
}

func (it *scanIter) open(f *frame) error {
	it.close()
	it.at = 0
	return it.set.build(f, it.p)
}

func (it *scanIter) close() {
	if it.store != nil {
		// What went wrong in the scan was reported when Next ended.
		_ = it.store.Close()
		it.store = nil
	}
	it.at = len(it.set.spans)
}

func (it *scanIter) next(f *frame) (bool, error) {
	p := it.p
	for {
		value, version, shared, ok, err := it.advance(f)
		if err != nil || !ok {
			return false, err
		}
		if err := f.row(); err != nil {
			return false, err
		}
		if err := f.checkReads(); err != nil {
			return false, err
		}
		if shared && p.copies {
			value = f.arena.Copy(value)
		}
		if err := p.decoder.Decode(value, f.slots); err != nil {
			return false, err
		}
		if p.hasSys {
			setSystem(f, p, version, mvcc.Version{})
		}
		if ok, err := pass(f, p.policy); err != nil {
			return false, err
		} else if !ok {
			continue
		}
		if ok, err := pass(f, p.filter); err != nil || ok {
			return ok, err
		}
	}
}

// advance finds the next stored row. shared tells that its bytes are lent until
// the next call.
func (it *scanIter) advance(f *frame) (value []byte, v mvcc.Version, shared, ok bool, err error) {
	p := it.p
	mode := f.mode
	if p.existence && mode == mvcc.ReadRecorded {
		mode = mvcc.ReadExistence
	}
	for {
		if it.store != nil {
			if it.store.Next() {
				if p.index == 0 {
					return it.store.Value(), it.store.Version(), true, true, nil
				}
				value, v, err = it.primary(f, it.store.Value())
				return value, v, false, err == nil, err
			}
			err := it.store.Close()
			it.store = nil
			if err != nil {
				return nil, v, false, false, err
			}
		}
		if it.at >= len(it.set.spans) {
			return nil, v, false, false, nil
		}
		i := it.at
		if p.reverse {
			i = len(it.set.spans) - 1 - i
		}
		it.at++
		s := &it.set.spans[i]
		if !s.point() {
			it.store = f.env.Store(p.table).Scan(s.rwset(), p.reverse, mode)
			continue
		}
		value, v, ok, err = f.env.Store(p.table).Get(s.start, mode)
		if err != nil {
			return nil, v, false, false, err
		}
		if !ok {
			continue
		}
		if p.index != 0 {
			if value, v, err = it.primary(f, value); err != nil {
				return nil, v, false, false, err
			}
		}
		return value, v, false, true, nil
	}
}

// primary gets the row that an entry of a secondary index points to.
func (it *scanIter) primary(f *frame, suffix []byte) ([]byte, mvcc.Version, error) {
	it.key = append(append(it.key[:0], it.p.layout.IndexPrefix(0)...), suffix...)
	value, v, ok, err := f.env.Store(it.p.table).Get(it.key, f.mode)
	if err == nil && !ok {
		err = fmt.Errorf("exec: index %s of table %s has an entry without a row, primary key %x",
			it.p.table.Indexes[it.p.index].Name, it.p.table.Name, suffix)
	}
	return value, v, err
}

// setSystem fills the slots of system columns. A row version that the
// transaction wrote itself has no block yet.
func setSystem(f *frame, p *scanProg, creator, deleter mvcc.Version) {
	set := func(slot int, d datum.Datum) {
		if slot >= 0 {
			f.slots[slot] = d
		}
	}
	block := func(v mvcc.Version) datum.Datum {
		if v.IsZero() || v.Own() {
			return datum.Null
		}
		return datum.Int(int64(v.Block))
	}
	set(p.sys.Xmin, datum.Int(int64(creator.XID)))
	set(p.sys.Xmax, datum.Int(int64(deleter.XID)))
	set(p.sys.CreatorBlock, block(creator))
	set(p.sys.DeleterBlock, block(deleter))
	set(p.sys.TableOID, datum.Int(int64(p.table.OID)))
	set(p.sys.Ctid, datum.Null) // rows have no physical place that nodes agree on
}

// provenanceIter reads all versions of rows, in the order of their keys and
// then oldest first. Through a secondary index it first looks up which rows ever
// had an entry in the ranges, and then passes those of their versions that are
// in the ranges themselves; a row comes where its first entry stands.
type provenanceIter struct {
	p        *scanProg
	set      spanSet
	at       int
	versions *mvcc.VersionIter
	from, to uint64
	none     bool

	primaries [][]byte // secondary index: keys of the rows, in order
	key       []byte
}

func (it *provenanceIter) open(f *frame) (err error) {
	it.close()
	it.at, it.none = 0, false
	it.from, it.to = 0, mvcc.OwnBlock
	if err := it.blockBounds(f); err != nil {
		return err
	}
	if err := it.set.build(f, it.p); err != nil || it.p.index == 0 {
		return err
	}
	return it.collect(f)
}

func (it *provenanceIter) blockBounds(f *frame) error {
	if it.p.fromBlock != nil {
		d, err := it.p.fromBlock(f)
		if err != nil {
			return err
		}
		it.none = d.IsNull()
		it.from = uint64(max(d.Int(), 0))
	}
	if it.p.toBlock != nil {
		d, err := it.p.toBlock(f)
		if err != nil {
			return err
		}
		it.none = it.none || d.IsNull() || d.Int() < 0
		it.to = uint64(max(d.Int(), 0))
	}
	return nil
}

// collect finds the primary keys that the spans of a secondary index ever
// pointed to.
func (it *provenanceIter) collect(f *frame) error {
	seen := map[string]struct{}{}
	for i := range it.set.spans {
		v := f.env.Store(it.p.table).Versions(it.bounds(&it.set.spans[i]), 0, mvcc.OwnBlock)
		for v.Next() {
			if _, ok := seen[string(v.Value())]; ok {
				continue
			}
			if err := f.row(); err != nil {
				_ = v.Close()
				return err
			}
			seen[string(v.Value())] = struct{}{}
			key := append([]byte(nil), it.p.layout.IndexPrefix(0)...)
			it.primaries = append(it.primaries, append(key, v.Value()...))
		}
		if err := v.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (it *provenanceIter) bounds(s *span) rwset.Span {
	if s.point() {
		return rwset.Point(s.start)
	}
	return s.rwset()
}

func (it *provenanceIter) close() {
	if it.versions != nil {
		_ = it.versions.Close()
		it.versions = nil
	}
	it.primaries = nil
	it.none = true
}

func (it *provenanceIter) next(f *frame) (bool, error) {
	for !it.none {
		if it.versions == nil {
			s, ok := it.nextSpan()
			if !ok {
				break
			}
			it.versions = f.env.Store(it.p.table).Versions(s, it.from, it.to)
		}
		if !it.versions.Next() {
			err := it.versions.Close()
			it.versions = nil
			if err != nil {
				return false, err
			}
			continue
		}
		if ok, err := it.row(f); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

func (it *provenanceIter) nextSpan() (rwset.Span, bool) {
	it.at++
	if it.p.index != 0 {
		if it.at > len(it.primaries) {
			return rwset.Span{}, false
		}
		return rwset.Point(it.primaries[it.at-1]), true
	}
	if it.at > len(it.set.spans) {
		return rwset.Span{}, false
	}
	return it.bounds(&it.set.spans[it.at-1]), true
}

// row decodes the current version; false if it is not wanted.
func (it *provenanceIter) row(f *frame) (bool, error) {
	if err := f.row(); err != nil {
		return false, err
	}
	value := f.arena.Copy(it.versions.Value())
	if it.p.index != 0 {
		if ok, err := it.inRanges(f, value); err != nil || !ok {
			return false, err
		}
	}
	if err := it.p.decoder.Decode(value, f.slots); err != nil {
		return false, err
	}
	setSystem(f, it.p, it.versions.Creator(), it.versions.Deleter())
	if ok, err := pass(f, it.p.policy); err != nil || !ok {
		return false, err
	}
	return pass(f, it.p.filter)
}

// inRanges tells whether a row version has its entry in the spans.
func (it *provenanceIter) inRanges(f *frame, value []byte) (bool, error) {
	row := f.args[it.p.allAt : it.p.allAt+len(it.p.layout.Types())]
	if err := it.p.all.Decode(value, row); err != nil {
		return false, err
	}
	it.key = it.p.layout.IndexKey(it.key[:0], it.p.index, row)
	for i := range it.set.spans {
		s := &it.set.spans[i]
		if s.point() && bytes.Equal(it.key, s.start) ||
			!s.point() && bytes.Compare(it.key, s.start) >= 0 && bytes.Compare(it.key, s.end) < 0 {
			return true, nil
		}
	}
	return false, nil
}
