package chain

import (
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

func (c *Chain) eachKey(span rwset.Span, height block.Height, f func(key []byte) error) error {
	return c.eachLive(span, height, func(key []byte, _ mvcc.Version, _ []byte) error { return f(key) })
}

func (c *Chain) count(span rwset.Span, height block.Height) (n uint64, err error) {
	err = c.eachKey(span, height, func([]byte) error { n++; return nil })
	return n, err
}

// difference describes a row for people. Value is a version of the row from which
// its key columns can be read; nil if there is none.
func (c *Chain) difference(height block.Height, key, value []byte, reason string) *Difference {
	d := &Difference{Block: height, Raw: key, Reason: reason}
	d.Table, d.Key = c.describe(height, key, value)
	return d
}

// describe names the table of a stored key, and the key as SQL shows it. The
// state may be damaged: what cannot be read is shown as bytes.
func (c *Chain) describe(height block.Height, key, value []byte) (table, text string) {
	table, text = fmt.Sprintf("%d", tableOf(key)), fmt.Sprintf("\\x%x", key)
	if len(key) < catalog.PrefixLen {
		return table, text
	}
	v, err := c.view(height)
	if err != nil {
		return table, text
	}
	t, ok := v.catalog.TableByOID(catalog.OID(tableOf(key)))
	if !ok {
		return table, text
	}
	table = t.Name
	layout, err := catalog.NewLayout(t)
	if err != nil {
		return table, text
	}
	index := tableOf(key[4:])
	for i := range t.Indexes {
		if i > 0 && uint32(t.Indexes[i].OID) == index {
			return table, fmt.Sprintf("\\x%x of index %s", key[catalog.PrefixLen:], t.Indexes[i].Name)
		}
	}
	if s, ok := primaryText(t, layout, value); ok {
		text = s
	}
	return table, text
}

// primaryText shows the primary key of a row: (7, abc).
func primaryText(t *catalog.Table, layout *catalog.Layout, value []byte) (string, bool) {
	if value == nil {
		return "", false
	}
	slots := make([]int, len(t.Columns))
	for i := range slots {
		slots[i] = i
	}
	row := make([]datum.Datum, len(slots))
	if err := layout.Decoder(slots).Decode(value, row); err != nil {
		return "", false
	}
	var parts []string
	for _, k := range t.Indexes[0].Keys {
		col := &t.Columns[k.Column]
		parts = append(parts, string(col.Type.Append(nil, row[k.Column], &datum.ContractFormat)))
	}
	return "(" + strings.Join(parts, ", ") + ")", true
}
