package server

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql/datum"
)

// TestEnvelopes: a client hands over transactions that it signed itself. Whatever
// is wrong with one is a clear error, and the connection goes on.
func TestEnvelopes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	r := startNode(t, dir)
	r.work()
	alice, err := identity.LoadKey(filepath.Join(dir, keysName, "alice.pem"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := r.connect("bob")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	nonce := byte(0)
	sign := func(change func(*block.Tx)) []byte {
		call, err := contracts.MakeCall("blockchain", "take", []datum.Type{datum.T(datum.Int4), datum.T(datum.Text)}, []datum.Datum{datum.Int(7), datum.Str("own key")})
		if err != nil {
			t.Fatal(err)
		}
		nonce++
		tx := &block.Tx{Network: r.genesis.NetworkID(), User: identity.UserID{Org: DevOrg, Name: "alice"}, Call: call,
			Time: time.Now().UnixMicro(), ValidUntil: r.Height() + 50, Nonce: [16]byte{nonce}}
		if change != nil {
			change(tx)
		}
		if err := tx.Sign(alice); err != nil {
			t.Fatal(err)
		}
		return tx.Encode()
	}
	submit := func(raw []byte) ([]byte, string) {
		var result []byte
		if err := conn.QueryRow(context.Background(), "SELECT tallystick_submit($1)", raw).Scan(&result); err != nil {
			return nil, sqlState(err)
		}
		return result, ""
	}
	good := sign(nil)
	first, code := submit(good)
	if code != "" || len(first) == 0 {
		t.Fatalf("a good transaction: %x, %s", first, code)
	}
	height := r.Height()
	if again, code := submit(good); code != "" || !bytes.Equal(again, first) || r.Height() != height {
		t.Errorf("the same again: %x, %s, height %d after %d", again, code, r.Height(), height)
	}
	forged := sign(nil)
	forged[len(forged)-1] ^= 1
	for _, c := range []struct {
		name string
		raw  []byte
		want string
	}{
		{"nothing", []byte{}, "22P03"},
		{"garbage", bytes.Repeat([]byte{0xff}, 300), "22P03"},
		{"cut short", good[:len(good)-3], "22P03"},
		{"with something behind", append(bytes.Clone(good), 0), "22P03"},
		{"a megabyte", bytes.Repeat(good, 1<<20/len(good)), "22P03"},
		{"wrong signature", forged, "28000"},
		{"unknown user", sign(func(tx *block.Tx) { tx.User.Name = "mallory" }), "28000"},
		{"another's name", sign(func(tx *block.Tx) { tx.User.Name = "bob" }), "28000"},
		{"another network", sign(func(tx *block.Tx) { tx.Network[0] ^= 1 }), "28000"},
		{"unknown function", sign(func(tx *block.Tx) { tx.Call.Name = "nothing" }), "42883"},
		{"wrong argument types", sign(func(tx *block.Tx) { tx.Call.ArgTypes = []string{"text", "text"} }), "42883"},
		{"damaged argument", sign(func(tx *block.Tx) { tx.Call.Args[0].Value = []byte{1} }), "22P03"},
		{"its own error", sign(nil), "23505"},
	} {
		if _, code := submit(c.raw); code != c.want {
			t.Errorf("%s: %s, want %s", c.name, code, c.want)
		}
	}
	var n int
	if err := conn.QueryRow(context.Background(), "SELECT count(*) FROM notes WHERE id = 7").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
	if _, err := conn.Exec(context.Background(), "SELECT tallystick_submit(NULL)"); sqlState(err) != "22004" {
		t.Errorf("null: %v", err)
	}
	r.close()
}
