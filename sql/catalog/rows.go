package catalog

import (
	"encoding/binary"
	"fmt"

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
// A Layout is immutable; whoever runs many statements keeps it.
type Layout struct {
	types    []datum.Type
	indexes  []Index
	missing  []datum.Datum // nil if no column has a Missing value
	prefixes [][PrefixLen]byte
}

// NewLayout makes the layout of a stored table. Views have none.
func NewLayout(t *Table) (*Layout, error) {
	if len(t.Indexes) == 0 || !t.Indexes[0].Primary {
		return nil, fmt.Errorf("catalog: relation %s.%s has no primary index first", t.Schema, t.Name)
	}
	l := &Layout{types: t.Types(), indexes: t.Indexes, prefixes: make([][PrefixLen]byte, len(t.Indexes))}
	for i := range t.Indexes {
		binary.BigEndian.PutUint32(l.prefixes[i][:], uint32(t.OID))
		binary.BigEndian.PutUint32(l.prefixes[i][4:], uint32(t.Indexes[i].OID))
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
// Table.Indexes; 0 is the primary key).
func (l *Layout) IndexKey(dst []byte, i int, row []datum.Datum) []byte {
	dst = append(dst, l.prefixes[i][:]...)
	dst = l.appendColumns(dst, &l.indexes[i], row)
	if i != 0 && !l.Exclusive(i, row) {
		dst = l.IndexValue(dst, row)
	}
	return dst
}

// Exclusive reports whether row's entry in index i excludes all other rows with
// the same key columns: the index is unique and none of them is null.
func (l *Layout) Exclusive(i int, row []datum.Datum) bool {
	idx := &l.indexes[i]
	if !idx.Unique && !idx.Primary {
		return false
	}
	for k := range idx.Keys {
		if row[idx.Keys[k].Column].IsNull() {
			return false
		}
	}
	return true
}

// AppendKeyColumn appends key column k of index i with value d, as it stands in
// keys of that index.
func (l *Layout) AppendKeyColumn(dst []byte, i, k int, d datum.Datum) []byte {
	key := &l.indexes[i].Keys[k]
	return datum.AppendKeyColumn(dst, l.types[key.Column], d, key.Desc, key.NullsFirst)
}

// IndexValue appends what entries of secondary indexes hold: the bytes of the
// primary key after its prefix.
func (l *Layout) IndexValue(dst []byte, row []datum.Datum) []byte {
	return l.appendColumns(dst, &l.indexes[0], row)
}

func (l *Layout) appendColumns(dst []byte, idx *Index, row []datum.Datum) []byte {
	for k := range idx.Keys {
		key := &idx.Keys[k]
		dst = datum.AppendKeyColumn(dst, l.types[key.Column], row[key.Column], key.Desc, key.NullsFirst)
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

// EachEntry calls put with every key and value that row has, the primary
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
		buf = l.IndexKey(buf[:0], i, row)
		if err := put(buf, pk); err != nil {
			return err
		}
	}
	return nil
}
