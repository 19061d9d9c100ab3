package catalog

import (
	"encoding/json"
	"fmt"

	"github.com/tallystick/tallystick/mvcc"
)

// Editor changes the catalog within one transaction of the system phase. Each
// change is written at once; [Editor.Catalog] then shows it.
type Editor struct {
	txn     *mvcc.Txn
	catalog *Catalog
	private *privateSide // nil for the replicated catalog
}

// NewEditor starts from the catalog that txn sees.
func NewEditor(txn *mvcc.Txn, current *Catalog) *Editor {
	return &Editor{txn: txn, catalog: current}
}

// Catalog is the catalog with all changes so far.
func (e *Editor) Catalog() *Catalog { return e.catalog }

// NextOID takes a fresh OID from the counter.
func (e *Editor) NextOID() (OID, error) {
	if e.private != nil {
		return e.private.nextOID()
	}
	oid := e.catalog.nextOID
	if oid+1 == 0 {
		return 0, fmt.Errorf("catalog: all object identifiers are used up")
	}
	next := *e.catalog
	next.nextOID = oid + 1
	e.catalog = &next
	return oid, e.put(rowKey(kindOID), next.nextOID)
}

// PutTable creates or replaces a table or view; its columns' types are resolved
// from their OIDs.
func (e *Editor) PutTable(t *Table) error {
	if err := e.catalog.resolveColumns(t.Name, t.Columns); err != nil {
		return err
	}
	if err := e.catalog.resolveKeys(t); err != nil {
		return err
	}
	return e.change(relationKey(t.Schema, t.Name), t)
}

// DropTable removes a table's descriptor. Its rows are the caller's business.
func (e *Editor) DropTable(t *Table) error {
	return e.drop(relationKey(t.Schema, t.Name))
}

// PutFunc creates or replaces a function.
func (e *Editor) PutFunc(f *Func) error {
	if err := e.catalog.resolveFunc(f); err != nil {
		return err
	}
	return e.change(funcKey(f), f)
}

// DropFunc removes a function.
func (e *Editor) DropFunc(f *Func) error { return e.drop(funcKey(f)) }

// PutSchema creates a schema.
func (e *Editor) PutSchema(s *Schema) error { return e.change(rowKey(kindSchema, s.Name), s) }

// DropSchema removes a schema.
func (e *Editor) DropSchema(s *Schema) error { return e.drop(rowKey(kindSchema, s.Name)) }

func (e *Editor) change(key []byte, object any) error {
	if err := e.put(key, object); err != nil {
		return err
	}
	return e.reload()
}

func (e *Editor) drop(key []byte) error {
	if err := e.txn.Delete(key); err != nil {
		return err
	}
	return e.reload()
}

// put writes one catalog row. Struct fields are written in declaration order
// and no descriptor holds a map, so the bytes are a function of the object.
func (e *Editor) put(key []byte, object any) error {
	b, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("catalog: %w", err)
	}
	return e.txn.Put(key, b)
}

// reload marks the catalog as changed and reads it back.
func (e *Editor) reload() error {
	if err := e.txn.Put(versionKey, nil); err != nil {
		return err
	}
	if e.private != nil {
		return e.reloadPrivate()
	}
	c, err := Load(e.txn)
	if err != nil {
		return err
	}
	e.catalog = c
	return nil
}
