package catalog

import (
	"maps"
	"slices"
	"sync"

	"github.com/tallystick/tallystick/mvcc"
)

// The objects of schema private are rows of a store of their own, in the same
// form as those of the replicated store. A session sees one catalog, merged of
// both.

// LoadPrivate reads the objects of schema private alone, at the snapshot of a
// transaction on its store. Their types are found by [Merge], for those of
// schema blockchain may be among them.
func LoadPrivate(txn *mvcc.Txn) (*Catalog, error) {
	c := empty()
	return c, c.load(txn)
}

// Merge puts the objects of schema private beside those of a replicated catalog.
// What has a type that was dropped there is left out.
func Merge(chain, private *Catalog) (*Catalog, error) {
	if len(private.tables)+len(private.funcs)+len(private.schemas)+len(private.types)+len(private.comments) == 0 {
		return chain, nil
	}
	c := &Catalog{
		Version: chain.Version,
		schemas: maps.Clone(chain.schemas), tables: maps.Clone(chain.tables), indexes: maps.Clone(chain.indexes),
		tableOID: maps.Clone(chain.tableOID), funcs: maps.Clone(chain.funcs), funcOID: maps.Clone(chain.funcOID),
		types: maps.Clone(chain.types), typeOID: maps.Clone(chain.typeOID), rowOID: maps.Clone(chain.rowOID),
		arrayOf: maps.Clone(chain.arrayOf), descs: maps.Clone(chain.descs), comments: maps.Clone(chain.comments),
		nextOID: chain.nextOID,
	}
	for name, s := range private.schemas {
		if _, taken := c.schemas[name]; !taken { // a deployment may have come later
			c.schemas[name] = s
		}
	}
	maps.Copy(c.comments, private.comments)
	return c, c.adopt(private)
}

// adopt adds copies of the types, tables and functions of another catalog, which
// are resolved here.
func (c *Catalog) adopt(private *Catalog) error {
	for _, t := range private.Types() {
		next := *t
		next.Fields = slices.Clone(t.Fields)
		c.addType(&next)
	}
	for _, t := range private.Tables() {
		next := *t
		next.Columns = slices.Clone(t.Columns)
		next.Indexes = slices.Clone(t.Indexes)
		for i := range next.Indexes {
			next.Indexes[i].Keys = slices.Clone(next.Indexes[i].Keys)
		}
		c.addTable(&next)
	}
	r := &resolver{c: c, pending: map[OID]bool{}}
	for _, t := range private.Types() {
		if !r.known(t.OID) {
			delete(c.types, qualified{t.Schema, t.Name})
			delete(c.typeOID, t.OID)
		} else if _, err := r.desc(t.OID); err != nil {
			return err
		}
	}
	for _, t := range private.Tables() {
		if !r.knownColumns(t.Columns) {
			delete(c.tables, qualified{t.Schema, t.Name})
			delete(c.tableOID, t.OID)
			delete(c.rowOID, t.RowType)
			for i := range t.Indexes {
				delete(c.indexes, qualified{t.Schema, t.Indexes[i].Name})
			}
		} else if err := r.table(c.tableOID[t.OID]); err != nil {
			return err
		}
	}
	for _, f := range private.AllFuncs() {
		if !r.known(f.RetOID) || slices.ContainsFunc(f.Args, func(a Arg) bool { return !r.known(a.TypeOID) }) {
			continue
		}
		next := *f
		next.Args = slices.Clone(f.Args)
		if err := c.resolveFunc(&next); err != nil {
			return err
		}
		c.addFunc(&next)
	}
	return nil
}

// known tells that a type exists, with all that it is made of.
func (r *resolver) known(oid OID) bool {
	if r.c.TypeByOID(oid) != nil {
		return true
	}
	if elem, ok := r.c.arrayOf[oid]; ok {
		return r.known(elem)
	}
	if t, ok := r.c.typeOID[oid]; ok {
		return (t.BaseOID == 0 || r.known(t.BaseOID)) && r.knownColumns(t.Fields)
	}
	t, ok := r.c.rowOID[oid]
	return ok && r.knownColumns(t.Columns)
}

func (r *resolver) knownColumns(cols []Column) bool {
	return !slices.ContainsFunc(cols, func(c Column) bool { return !r.known(c.TypeOID) })
}

// privateSide is what an editor of private objects needs besides.
type privateSide struct {
	chain   *Catalog
	own     *Catalog
	nextOID func() (OID, error)
}

// NewPrivateEditor changes the objects of schema private within one local
// transaction. chain is the replicated catalog beside them, current the merged
// one, nextOID the counter of the private store, which is outside of
// transactions: an OID is never given out twice.
func NewPrivateEditor(txn *mvcc.Txn, chain, current *Catalog, nextOID func() (OID, error)) *Editor {
	return &Editor{txn: txn, catalog: current, private: &privateSide{chain: chain, nextOID: nextOID}}
}

// Private is the private part of the catalog with all changes so far; nil if
// nothing was changed.
func (e *Editor) Private() *Catalog { return e.private.own }

// UseTemp makes pg_temp mean a schema in the catalogs to come and in the present
// one.
func (e *Editor) UseTemp(schema string) { e.catalog = e.catalog.WithTemp(schema) }

func (e *Editor) reloadPrivate() error {
	own, err := LoadPrivate(e.txn)
	if err != nil {
		return err
	}
	merged, err := Merge(e.private.chain, own)
	if err != nil {
		return err
	}
	e.private.own, e.catalog = own, merged.WithTemp(e.catalog.temp)
	return nil
}

// SequenceByOID finds a sequence.
func (c *Catalog) SequenceByOID(oid OID) (*Table, bool) {
	t, ok := c.tableOID[oid]
	if !ok || t.Kind != Sequence {
		return nil, false
	}
	return t, true
}

// PrivateCache keeps recent private catalogs and what was merged of them, so
// that the same pair of versions is the same catalog. Safe for concurrent use.
type PrivateCache struct {
	mu     sync.Mutex
	loaded []*Catalog // newest use first
	merged []mergedCatalog
}

type mergedCatalog struct{ chain, private, catalog *Catalog }

// At returns the private catalog at the snapshot of txn, which must not have
// changed it itself.
func (k *PrivateCache) At(txn *mvcc.Txn) (*Catalog, error) {
	_, v, _, err := txn.Get(versionKey, mvcc.ReadUnrecorded)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, c := range k.loaded {
		if c.Version == v {
			k.loaded = slices.Insert(slices.Delete(k.loaded, i, i+1), 0, c)
			return c, nil
		}
	}
	c, err := LoadPrivate(txn)
	if err != nil {
		return nil, err
	}
	k.loaded = slices.Insert(k.loaded, 0, c)
	k.loaded = k.loaded[:min(len(k.loaded), cacheSize)]
	return c, nil
}

// Merged is [Merge], kept for catalogs of [PrivateCache.At].
func (k *PrivateCache) Merged(chain, private *Catalog) (*Catalog, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, m := range k.merged {
		if m.chain == chain && m.private == private {
			k.merged = slices.Insert(slices.Delete(k.merged, i, i+1), 0, m)
			return m.catalog, nil
		}
	}
	both, err := Merge(chain, private)
	if err != nil {
		return nil, err
	}
	m := mergedCatalog{chain, private, both}
	k.merged = slices.Insert(k.merged, 0, m)
	k.merged = k.merged[:min(len(k.merged), cacheSize)]
	return both, nil
}
