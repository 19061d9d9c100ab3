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
// transaction on its store.
func LoadPrivate(txn *mvcc.Txn) (*Catalog, error) {
	c := &Catalog{
		schemas: map[string]*Schema{}, tables: map[qualified]*Table{}, indexes: map[qualified]*Table{},
		tableOID: map[OID]*Table{}, funcs: map[qualified][]*Func{}, funcOID: map[OID]*Func{},
	}
	return c, c.load(txn)
}

// Merge puts the objects of schema private beside those of a replicated catalog.
func Merge(chain, private *Catalog) *Catalog {
	if len(private.tables)+len(private.funcs)+len(private.schemas) == 0 {
		return chain
	}
	c := &Catalog{
		Version: chain.Version,
		schemas: maps.Clone(chain.schemas), tables: maps.Clone(chain.tables), indexes: maps.Clone(chain.indexes),
		tableOID: maps.Clone(chain.tableOID), funcs: maps.Clone(chain.funcs), funcOID: maps.Clone(chain.funcOID),
		nextOID: chain.nextOID,
	}
	maps.Copy(c.schemas, private.schemas)
	maps.Copy(c.tables, private.tables)
	maps.Copy(c.indexes, private.indexes)
	maps.Copy(c.tableOID, private.tableOID)
	maps.Copy(c.funcs, private.funcs)
	maps.Copy(c.funcOID, private.funcOID)
	return c
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

func (e *Editor) reloadPrivate() error {
	own, err := LoadPrivate(e.txn)
	if err != nil {
		return err
	}
	e.private.own = own
	e.catalog = Merge(e.private.chain, own)
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
func (k *PrivateCache) Merged(chain, private *Catalog) *Catalog {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, m := range k.merged {
		if m.chain == chain && m.private == private {
			k.merged = slices.Insert(slices.Delete(k.merged, i, i+1), 0, m)
			return m.catalog
		}
	}
	m := mergedCatalog{chain, private, Merge(chain, private)}
	k.merged = slices.Insert(k.merged, 0, m)
	k.merged = k.merged[:min(len(k.merged), cacheSize)]
	return m.catalog
}
