package catalog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
)

// rowsTable: id and code are the key; an index on (n desc), a unique one on s.
func rowsTable() *Table {
	col := func(name string, d *datum.Desc) Column {
		return Column{Name: name, TypeOID: d.OID, TypMod: -1, Type: datum.T(d)}
	}
	return &Table{OID: 0x01020304, Schema: "blockchain", Name: "t",
		Columns: []Column{col("id", datum.Int4), col("n", datum.Numeric), col("s", datum.Text), col("code", datum.Text)},
		Indexes: []Index{
			{OID: 0x11, Name: "t_pkey", Unique: true, Primary: true, Keys: []IndexKey{{Column: 0}, {Column: 3}}},
			{OID: 0x12, Name: "t_n", Keys: []IndexKey{{Column: 1, Desc: true, NullsFirst: true}}},
			{OID: 0x13, Name: "t_s", Unique: true, Keys: []IndexKey{{Column: 2}}},
		}}
}

func mustLayout(t *testing.T, tab *Table) *Layout {
	t.Helper()
	l, err := NewLayout(tab)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func row(t *testing.T, id int64, n, s, code string) []datum.Datum {
	t.Helper()
	out := []datum.Datum{datum.Int(id), datum.Null, datum.Null, datum.Str(code)}
	if n != "" {
		d, err := datum.ParseNumeric(n)
		if err != nil {
			t.Fatal(err)
		}
		out[1] = d
	}
	if s != "" {
		out[2] = datum.Str(s)
	}
	return out
}

func TestLayoutKeys(t *testing.T) {
	l := mustLayout(t, rowsTable())
	r := row(t, 7, "1.50", "x", "ab")
	pk := l.PrimaryKey(nil, r)
	want := "0102030400000011" + "018000000000000007" + "0161620000"
	if got := fmt.Sprintf("%x", pk); got != want {
		t.Errorf("primary key %s, expected %s", got, want)
	}
	if !bytes.Equal(l.IndexKey(nil, 0, r), pk) {
		t.Error("the primary index's key is not the primary key")
	}
	suffix := l.IndexValue(nil, r)
	if !bytes.Equal(append(bytes.Clone(l.IndexPrefix(0)), suffix...), pk) {
		t.Error("prefix and value do not make the primary key")
	}
	if key := l.IndexKey(nil, 1, r); !bytes.HasPrefix(key, l.IndexPrefix(1)) || !bytes.HasSuffix(key, suffix) {
		t.Errorf("entry %x does not end in the primary key", key)
	}
	if got := fmt.Sprintf("%x", l.IndexKey(nil, 2, r)); got != "0102030400000013"+"01780000" {
		t.Errorf("unique entry %s", got)
	}
	if !l.Exclusive(0, r) || l.Exclusive(1, r) || !l.Exclusive(2, r) {
		t.Error("which indexes exclude duplicates")
	}
	none := row(t, 7, "", "", "ab")
	if l.Exclusive(2, none) || !bytes.HasSuffix(l.IndexKey(nil, 2, none), suffix) {
		t.Error("a null in a unique index must not exclude others")
	}
	if l.Position(&Index{OID: 0x13}) != 2 || l.Position(&Index{OID: 9}) != -1 {
		t.Error("positions")
	}
}

// Keys sort as their columns do.
func TestLayoutKeyOrder(t *testing.T) {
	l := mustLayout(t, rowsTable())
	r := rand.New(rand.NewPCG(1, 2))
	nums := []string{"", "-1", "0", "1.5", "10"}
	var rows [][]datum.Datum
	for range 200 {
		rows = append(rows, row(t, int64(r.IntN(5)-2), nums[r.IntN(len(nums))], "", string(rune('a'+r.IntN(3)))))
	}
	rank := func(x []datum.Datum) int { // nulls first, then descending
		if x[1].IsNull() {
			return 0
		}
		i := 1
		for _, n := range nums[1:] {
			if datum.NumericCmp(x[1], row(t, 0, n, "", "")[1]) == 0 {
				return len(nums) - i
			}
			i++
		}
		panic("no such number")
	}
	slices.SortFunc(rows, func(a, b []datum.Datum) int { return bytes.Compare(l.IndexKey(nil, 1, a), l.IndexKey(nil, 1, b)) })
	for i := 1; i < len(rows); i++ {
		a, b := rows[i-1], rows[i]
		switch ra, rb := rank(a), rank(b); {
		case ra > rb:
			t.Fatalf("row %d sorts before %d", ra, rb)
		case ra == rb && a[0].Int() > b[0].Int():
			t.Fatalf("id %d before %d", a[0].Int(), b[0].Int())
		case ra == rb && a[0] == b[0] && a[3].Str() > b[3].Str():
			t.Fatalf("code %s before %s", a[3].Str(), b[3].Str())
		}
	}
}

func TestEachEntry(t *testing.T) {
	l := mustLayout(t, rowsTable())
	r := row(t, 7, "1.50", "x", "ab")
	var keys, values [][]byte
	err := l.EachEntry(r, func(k, v []byte) error {
		keys, values = append(keys, bytes.Clone(k)), append(values, bytes.Clone(v))
		return nil
	})
	if err != nil || len(keys) != 3 {
		t.Fatalf("%d entries, %v", len(keys), err)
	}
	for i, k := range keys {
		if !bytes.Equal(k, l.IndexKey(nil, i, r)) {
			t.Errorf("key %d is %x", i, k)
		}
		if i > 0 && !bytes.Equal(values[i], l.IndexValue(nil, r)) {
			t.Errorf("value %d is %x", i, values[i])
		}
	}
	got := make([]datum.Datum, 2)
	if err := l.Decoder([]int{-1, 1, -1, 0}).Decode(values[0], got); err != nil {
		t.Fatal(err)
	}
	if got[0].Str() != "ab" || string(datum.Numeric.Append(nil, got[1], &datum.ContractFormat)) != "1.50" {
		t.Errorf("decoded %s and %s", got[0].Str(), datum.Numeric.Append(nil, got[1], &datum.ContractFormat))
	}
	stop := fmt.Errorf("stop")
	if err := l.EachEntry(r, func(k, v []byte) error { return stop }); err != stop {
		t.Errorf("error %v", err)
	}
}

func TestMissingColumns(t *testing.T) {
	tab := rowsTable()
	old := mustLayout(t, tab).EncodeRow(nil, row(t, 7, "", "x", "ab"))
	seven := "7"
	tab.Columns = append(tab.Columns,
		Column{Name: "a", Type: datum.T(datum.Int8), Missing: &seven}, Column{Name: "b", Type: datum.T(datum.Int8)},
		Column{Name: "c", Type: datum.T(datum.Int8), Missing: &seven, Dropped: true})
	got := make([]datum.Datum, 3)
	if err := mustLayout(t, tab).Decoder([]int{-1, -1, -1, -1, 0, 1, 2}).Decode(old, got); err != nil {
		t.Fatal(err)
	}
	if got[0] != datum.Int(7) || !got[1].IsNull() || !got[2].IsNull() {
		t.Errorf("decoded %v", got)
	}
	bad := "x"
	tab.Columns[4].Missing = &bad
	if _, err := NewLayout(tab); err == nil {
		t.Error("a missing value that does not parse was accepted")
	}
	if _, err := NewLayout(&Table{Name: "v", Kind: View}); err == nil {
		t.Error("a view has a layout")
	}
}
