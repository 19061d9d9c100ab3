package catalog

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/datum"
)

// StoreTable is the table OID under which catalog rows are stored. The "index"
// part of their keys says what kind of object a row describes.
const StoreTable OID = 1

// The kinds of catalog rows.
const (
	kindVersion  = 1 // one row, rewritten by every change
	kindOID      = 2 // the OID counter
	kindSchema   = 3
	kindRelation = 4
	kindFunc     = 5
	kindType     = 6
	kindComment  = 7
)

// Prefix returns the eight bytes that begin the keys of one index of a table.
func Prefix(table, index OID) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 64), uint32(table))
	return binary.BigEndian.AppendUint32(b, uint32(index))
}

func rowKey(kind OID, parts ...string) []byte {
	key := Prefix(StoreTable, kind)
	for _, p := range parts {
		key = datum.Text.AppendKey(key, datum.Str(p))
	}
	return key
}

func relationKey(schema, name string) []byte { return rowKey(kindRelation, schema, name) }
func funcPrefix(schema, name string) []byte  { return rowKey(kindFunc, schema, name) }
func funcKey(f *Func) []byte                 { return rowKey(kindFunc, f.Schema, f.Name, f.Signature()) }

// versionKey is the key of the row that every change of the catalog rewrites;
// not to be changed.
var versionKey = rowKey(kindVersion)

// Signature returns the argument types of a call as text: it identifies a
// function among those of its name.
func (f *Func) Signature() string {
	s := ""
	for i, a := range f.InArgs() {
		if i > 0 {
			s += ","
		}
		s += datum.FormatType(datum.T(a.Type.Desc))
	}
	return s
}

// Load reads the whole catalog at the snapshot of txn. Nothing is recorded:
// what a transaction uses of it is recorded when it resolves names.
func Load(txn *mvcc.Txn) (*Catalog, error) {
	c := empty()
	c.nextOID = FirstUserOID
	for _, s := range systemSchemas {
		c.schemas[s.Name] = s
	}
	for _, t := range systemTables {
		c.addTable(t)
	}
	for _, f := range systemFuncs {
		c.addFunc(f)
	}
	if err := c.load(txn); err != nil {
		return nil, err
	}
	return c, c.link()
}

func empty() *Catalog {
	return &Catalog{
		schemas: map[string]*Schema{}, tables: map[qualified]*Table{}, indexes: map[qualified]*Table{},
		tableOID: map[OID]*Table{}, funcs: map[qualified][]*Func{}, funcOID: map[OID]*Func{},
		types: map[qualified]*Type{}, typeOID: map[OID]*Type{}, rowOID: map[OID]*Table{},
		arrayOf: map[OID]OID{}, descs: map[OID]*datum.Desc{}, comments: map[commentOf]*Comment{},
	}
}

// load adds the objects of a store.
func (c *Catalog) load(txn *mvcc.Txn) error {
	start := binary.BigEndian.AppendUint32(nil, uint32(StoreTable))
	it := txn.Scan(rwset.Span{Start: start, End: rwset.PrefixEnd(start)}, false, mvcc.ReadUnrecorded)
	defer it.Close()
	for it.Next() {
		if err := c.addRow(it.Key(), it.Value(), it.Version()); err != nil {
			return err
		}
	}
	return it.Err()
}

func (c *Catalog) addRow(key, value []byte, v mvcc.Version) error {
	kind := binary.BigEndian.Uint32(key[4:])
	switch kind {
	case kindVersion:
		c.Version = v
		return nil
	case kindOID:
		return unmarshal(value, &c.nextOID)
	case kindSchema:
		s := new(Schema)
		c2 := unmarshal(value, s)
		c.schemas[s.Name] = s
		return c2
	case kindRelation:
		t := new(Table)
		if err := unmarshal(value, t); err != nil {
			return err
		}
		t.key = pointRead(append([]byte(nil), key...))
		c.addTable(t)
		return nil
	case kindFunc:
		f := new(Func)
		if err := unmarshal(value, f); err != nil {
			return err
		}
		if f.OID == 0 { // of a range type; see constructorKey
			return nil
		}
		f.key = FuncName(f.Schema, f.Name)
		c.addFunc(f)
		return nil
	}
	if kind == kindComment {
		k := new(Comment)
		if err := unmarshal(value, k); err != nil {
			return err
		}
		c.comments[commentOf{k.Class, k.OID, k.Sub}] = k
		return nil
	}
	if kind == kindType {
		t := new(Type)
		if err := unmarshal(value, t); err != nil {
			return err
		}
		t.key = pointRead(append([]byte(nil), key...))
		c.addType(t)
		return nil
	}
	return fmt.Errorf("catalog: row of unknown kind %d", kind)
}

func unmarshal(value []byte, into any) error {
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("catalog: damaged row: %w", err)
	}
	return nil
}

// Cache keeps the most recent catalogs, so that a snapshot costs one look-up
// of the version row. Safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	recent []*Catalog // newest use first
}

// cacheSize is how many catalogs are kept: the current one, that of a block
// being made, and a few old heights.
const cacheSize = 8

// At returns the catalog at the snapshot of txn. Do not call it on a
// transaction that has changed the catalog itself: use [Load].
func (k *Cache) At(txn *mvcc.Txn) (*Catalog, error) {
	_, v, _, err := txn.Get(versionKey, mvcc.ReadUnrecorded)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, c := range k.recent {
		if c.Version == v {
			copy(k.recent[1:i+1], k.recent[:i])
			k.recent[0] = c
			return c, nil
		}
	}
	c, err := Load(txn)
	if err != nil {
		return nil, err
	}
	k.recent = append([]*Catalog{c}, k.recent...)
	if len(k.recent) > cacheSize {
		k.recent = k.recent[:cacheSize]
	}
	return c, nil
}
