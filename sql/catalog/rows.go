package catalog

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
)

// PrefixLen is the length of what every key of an index begins with: the OID
// of the table and that of the index, big endian.
const PrefixLen = 8

// Layout knows how the rows of one table are stored.
//
//	primary index    prefix, primary key columns                  -> the row
//	unique index     prefix, key columns                          -> primary key columns
//	other index      prefix, key columns, primary key columns     -> primary key columns
//
// A unique index stores an entry like any other index when a key column is
// null: such entries do not collide. "Primary key columns" are the bytes of a
// primary key after its prefix, so that a look-up through an index is a second
// get of the primary prefix and the entry's value. A row holds all columns, those
// of the key too, because values that compare equal may still differ (1.0 and
// 1.00).
//
// Indexes may have keys that are expressions and may be partial. What decides
// about their entries stands behind the columns of a row, in the order of
// [Layout.Computed]: whoever makes entries passes rows extended by these values.
// A row has no entry in a partial index unless its predicate is true.
//
// A Layout is immutable; whoever runs many statements keeps it.
type Layout struct {
	table    *Table
	types    []datum.Type
	indexes  []Index
	keys     [][]layoutKey // by index
	filters  []int         // by index: the place of the predicate's value, -1 = none
	computed []Computed
	missing  []datum.Datum // nil if no column has a Missing value
	prefixes [][PrefixLen]byte
}

// layoutKey is a key of an index: where its value stands in a row.
type layoutKey struct {
	at               int
	typ              datum.Type
	desc, nullsFirst bool
}

// Computed is a value that a row has for its indexes besides its columns.
type Computed struct {
	Index int // position in Table.Indexes
	Key   int // of the index; -1 = its predicate
	Expr  string
	Type  datum.Type
}

// NewLayout makes the layout of a stored table. Views have none.
func NewLayout(t *Table) (*Layout, error) {
	if len(t.Indexes) == 0 || !t.Indexes[0].Primary {
		return nil, fmt.Errorf("catalog: relation %s.%s has no primary index first", t.Schema, t.Name)
	}
	l := &Layout{table: t, types: t.Types(), indexes: t.Indexes, prefixes: make([][PrefixLen]byte, len(t.Indexes))}
	for i := range t.Indexes {
		binary.BigEndian.PutUint32(l.prefixes[i][:], uint32(t.OID))
		binary.BigEndian.PutUint32(l.prefixes[i][4:], uint32(t.Indexes[i].OID))
		l.addIndex(i)
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Missing == nil || c.Dropped {
			continue
		}
		if l.missing == nil {
			l.missing = make([]datum.Datum, len(t.Columns))
			for j := range l.missing {
				l.missing[j] = datum.Null
			}
		}
		v, err := c.Type.Parse(*c.Missing, c.Type.Mod, &datum.ContractFormat)
		if err != nil {
			return nil, fmt.Errorf("catalog: missing value of column %s.%s.%s: %w", t.Schema, t.Name, c.Name, err)
		}
		l.missing[i] = v
	}
	return l, nil
}

// addIndex finds the places of the keys of index i.
func (l *Layout) addIndex(i int) {
	idx := &l.indexes[i]
	keys := make([]layoutKey, len(idx.Keys))
	for k := range idx.Keys {
		key := &idx.Keys[k]
		keys[k] = layoutKey{key.Column, key.Type, key.Desc, key.NullsFirst}
		if key.Column >= 0 {
			keys[k].typ = l.types[key.Column]
			continue
		}
		keys[k].at = l.Width()
		l.computed = append(l.computed, Computed{i, k, key.Expr, key.Type})
	}
	filter := -1
	if idx.Predicate != "" {
		filter = l.Width()
		l.computed = append(l.computed, Computed{i, -1, idx.Predicate, datum.T(datum.BoolType)})
	}
	l.keys, l.filters = append(l.keys, keys), append(l.filters, filter)
}

// Computed are the values behind the columns of a row, in their order; not to be
// changed.
func (l *Layout) Computed() []Computed { return l.computed }

// Width is the number of values of a row with its computed ones.
func (l *Layout) Width() int { return len(l.types) + len(l.computed) }

// KeyType is the type of key k of index i.
func (l *Layout) KeyType(i, k int) datum.Type { return l.keys[i][k].typ }

// Has tells whether row has an entry in index i.
func (l *Layout) Has(i int, row []datum.Datum) bool {
	at := l.filters[i]
	return at < 0 || !row[at].IsNull() && row[at].Bool()
}

// Types are the types of all columns in storage order; not to be changed.
func (l *Layout) Types() []datum.Type { return l.types }

// Position finds an index of the table by identity: its place in
// Table.Indexes, or -1.
func (l *Layout) Position(idx *Index) int {
	for i := range l.indexes {
		if l.indexes[i].OID == idx.OID {
			return i
		}
	}
	return -1
}

// IndexPrefix is what every key of index i begins with; not to be changed.
func (l *Layout) IndexPrefix(i int) []byte { return l.prefixes[i][:] }

// PrimaryKey appends the key of row in the primary index.
func (l *Layout) PrimaryKey(dst []byte, row []datum.Datum) []byte {
	return l.IndexValue(append(dst, l.prefixes[0][:]...), row)
}

// IndexKey appends the key of row's entry in index i (a position in
// Table.Indexes; 0 is the primary key), which it must have.
func (l *Layout) IndexKey(dst []byte, i int, row []datum.Datum) []byte {
	dst = append(dst, l.prefixes[i][:]...)
	dst = appendKeys(dst, l.keys[i], row)
	if i != 0 && !l.Exclusive(i, row) {
		dst = l.IndexValue(dst, row)
	}
	return dst
}

// Exclusive reports whether row has an entry in index i that excludes all other
// rows with the same keys: the index is unique and none of them is null.
func (l *Layout) Exclusive(i int, row []datum.Datum) bool {
	idx := &l.indexes[i]
	if !idx.Unique && !idx.Primary || !l.Has(i, row) {
		return false
	}
	for k := range l.keys[i] {
		if row[l.keys[i][k].at].IsNull() {
			return false
		}
	}
	return true
}

// AppendKeyColumn appends key column k of index i with value d, as it stands in
// keys of that index.
func (l *Layout) AppendKeyColumn(dst []byte, i, k int, d datum.Datum) []byte {
	key := &l.keys[i][k]
	return datum.AppendKeyColumn(dst, key.typ, d, key.desc, key.nullsFirst)
}

// KeyText is a key of index i as messages show it: "(a, lower(b))=(1, x)".
func (l *Layout) KeyText(i int, row []datum.Datum, format *datum.Format) string {
	var names, values strings.Builder
	for k := range l.keys[i] {
		if k > 0 {
			names.WriteString(", ")
			values.WriteString(", ")
		}
		key := &l.keys[i][k]
		names.WriteString(l.table.KeyText(&l.indexes[i].Keys[k], true))
		if d := row[key.at]; d.IsNull() {
			values.WriteString("null")
		} else {
			values.Write(key.typ.Append(nil, d, format))
		}
	}
	return "(" + names.String() + ")=(" + values.String() + ")"
}

// IndexValue appends what entries of secondary indexes hold: the bytes of the
// primary key after its prefix.
func (l *Layout) IndexValue(dst []byte, row []datum.Datum) []byte {
	return appendKeys(dst, l.keys[0], row)
}

func appendKeys(dst []byte, keys []layoutKey, row []datum.Datum) []byte {
	for k := range keys {
		key := &keys[k]
		dst = datum.AppendKeyColumn(dst, key.typ, row[key.at], key.desc, key.nullsFirst)
	}
	return dst
}

// EncodeRow appends the stored form of a row: one datum per column of the
// table, null for dropped ones.
func (l *Layout) EncodeRow(dst []byte, row []datum.Datum) []byte {
	return datum.AppendRow(dst, l.types, row)
}

// Decoder makes a decoder of stored rows. slots gives, per column of the table,
// where its value goes; -1 where it is not needed. Columns that a row was
// written without get their Missing value.
func (l *Layout) Decoder(slots []int) *datum.RowDecoder {
	return datum.NewRowDecoder(l.types, slots, l.missing)
}

// EachEntry calls put with every key and value that row, extended by its
// computed values, has, the primary
// index's first: what an insert writes. The slices are only valid during the
// call.
func (l *Layout) EachEntry(row []datum.Datum, put func(key, value []byte) error) error {
	key := l.PrimaryKey(nil, row)
	pk := key[PrefixLen:len(key):len(key)]
	if err := put(key, l.EncodeRow(nil, row)); err != nil {
		return err
	}
	var buf []byte
	for i := 1; i < len(l.indexes); i++ {
		if !l.Has(i, row) {
			continue
		}
		buf = l.IndexKey(buf[:0], i, row)
		if err := put(buf, pk); err != nil {
			return err
		}
	}
	return nil
}
