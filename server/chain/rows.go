package chain

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// rowTable is how the chain reads and writes rows of a relation of the ledger.
type rowTable struct {
	table   *catalog.Table
	layout  *catalog.Layout
	decoder *datum.RowDecoder
}

func newRowTable(t *catalog.Table) *rowTable {
	layout, err := catalog.NewLayout(t)
	if err != nil {
		panic(err) // a fixed table
	}
	slots := make([]int, len(t.Columns))
	for i := range slots {
		slots[i] = i
	}
	return &rowTable{table: t, layout: layout, decoder: layout.Decoder(slots)}
}

// newRow makes a row of nulls.
func (t *rowTable) newRow() []datum.Datum {
	row := make([]datum.Datum, len(t.table.Columns))
	for i := range row {
		row[i] = datum.Null
	}
	return row
}

// key is the key of the row with this integer as primary key.
func (t *rowTable) key(n uint64) []byte {
	key := append([]byte(nil), t.layout.IndexPrefix(0)...)
	return t.layout.AppendKeyColumn(key, 0, 0, datum.Int(int64(n)))
}

func columnOf(t *catalog.Table, name string) int {
	i := t.Column(name)
	if i < 0 {
		panic(fmt.Sprintf("chain: relation %s has no column %s", t.Name, name))
	}
	return i
}
