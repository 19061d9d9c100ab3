package catalog

import (
	"cmp"
	"strconv"
)

// Comment is the description of an object (COMMENT ON).
type Comment struct {
	Class OID // of the catalog that has the object: pg_class, pg_proc, ...
	OID   OID
	Sub   int `json:",omitempty"` // column number, from 1
	Text  string
}

type commentOf struct {
	class, oid OID
	sub        int
}

func commentKey(class, oid OID, sub int) []byte {
	return rowKey(kindComment, strconv.FormatUint(uint64(class), 10), strconv.FormatUint(uint64(oid), 10), strconv.Itoa(sub))
}

// Comment finds the description of an object; "" if it has none.
func (c *Catalog) Comment(class, oid OID, sub int) string {
	if k, ok := c.comments[commentOf{class, oid, sub}]; ok {
		return k.Text
	}
	return ""
}

// Comments lists all descriptions by catalog, object and column.
func (c *Catalog) Comments() []*Comment {
	return sorted(c.comments, func(a, b *Comment) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.OID, b.OID), cmp.Compare(a.Sub, b.Sub))
	})
}

// PutComment sets the description of an object; an empty text removes it.
func (e *Editor) PutComment(k *Comment) error {
	key := commentKey(k.Class, k.OID, k.Sub)
	if k.Text != "" {
		return e.change(key, k)
	}
	if e.catalog.Comment(k.Class, k.OID, k.Sub) == "" {
		return nil
	}
	return e.drop(key)
}
