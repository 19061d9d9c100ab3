package replica

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/orderingtest"
)

// The suite that every ordering service passes, with one orderer and with four.
func TestSuite(t *testing.T) {
	for _, n := range []int{1, 4} {
		t.Run([]string{1: "one", 4: "four"}[n], func(t *testing.T) {
			orderingtest.Run(t, func(t *testing.T, setup orderingtest.Setup) *orderingtest.Cluster {
				c := newCluster(t, n, func(_ int, o *Options) {
					o.Cutter, o.Queue = setup.Cutter, setup.Queue
				})
				return c.forSuite()
			})
		})
	}
}

func (c *cluster) forSuite() *orderingtest.Cluster {
	c.startAll()
	g := c.genesis.Genesis
	s := &orderingtest.Cluster{Network: g.NetworkID(), Genesis: c.genesis, Orderers: g.Orderers, ConfigID: c.genesis.ConfigID}
	for _, n := range c.nodes {
		s.Members = append(s.Members, n.Replica)
	}
	s.Restart = func() *orderingtest.Cluster {
		for i := range c.nodes {
			c.stop(i)
		}
		return c.forSuite()
	}
	return s
}

// One of four stops and comes back: the others go on, and it catches up.
func TestOneOfFourStops(t *testing.T) {
	c := newCluster(t, 4, nil)
	c.startAll()
	maker := c.maker()
	txs := maker.Some(50)
	c.submit(0, txs...)
	c.agree(txs, 0, 1, 2, 3)

	c.stop(3)
	more := maker.Some(500)
	c.submit(1, more...)
	txs = append(txs, more...)
	c.agree(txs, 0, 1, 2)

	c.start(3)
	more = maker.Some(50)
	c.submit(3, more...)
	c.agree(append(txs, more...), 0, 1, 2, 3)
}

// The primary stops: a view change puts another one into its place, and nothing
// that was submitted to those who live is lost.
func TestPrimaryStops(t *testing.T) {
	c := newCluster(t, 4, func(_ int, o *Options) { o.Machine.RequestTicks = 50 })
	c.startAll()
	maker := c.maker()
	txs := maker.Some(20)
	c.submit(1, txs...)
	c.agree(txs, 0, 1, 2, 3)

	primary := c.nodes[0].Machine().Primary
	alive := []int{(primary + 1) % 4, (primary + 2) % 4, (primary + 3) % 4}
	c.stop(primary)
	more := maker.Some(100)
	c.submit(alive[0], more[:50]...)
	c.submit(alive[1], more[50:]...)
	txs = append(txs, more...)
	c.agree(txs, alive...)
	c.until("no view change", func() bool { return c.nodes[alive[0]].Machine().View > 0 })

	c.start(primary)
	c.agree(txs, 0, 1, 2, 3)
}

// All stop at once, in the middle of the work, and what was delivered stays.
func TestAllRestart(t *testing.T) {
	c := newCluster(t, 4, nil)
	maker := c.maker()
	txs := maker.Some(300)
	for round := range 3 {
		c.startAll()
		var load sync.WaitGroup
		for i := range 4 {
			m := c.nodes[i].Replica
			load.Go(func() {
				for _, tx := range txs[:100*(round+1)] {
					if m.Submit(t.Context(), tx) != nil {
						return // it ends
					}
				}
			})
		}
		_, before := c.chain(0, 10*(round+1))
		for i := range 4 {
			c.stop(i)
		}
		load.Wait()
		c.startAll()
		_, after := c.chain(0, len(before))
		for i := range before {
			if before[i].ID() != after[i].ID() {
				t.Fatalf("round %d: transaction %d has changed", round, i)
			}
		}
		for i := range 4 {
			c.stop(i)
		}
	}
	c.startAll()
	c.submit(2, txs...)
	c.agree(txs, 0, 1, 2, 3)
}

// What no honest orderer sends ends its connection and nothing else, whatever its
// size.
func TestBadFrames(t *testing.T) {
	c := newCluster(t, 4, nil)
	c.startAll()
	maker := c.maker()
	public := c.signers[1].Public()
	for name, raw := range map[string][]byte{
		"empty":          binary.BigEndian.AppendUint32(nil, 0),
		"too long":       binary.BigEndian.AppendUint32(nil, 1<<31),
		"announced only": append(binary.BigEndian.AppendUint32(nil, ordering.MaxMessageBytes), 1, 2, 3),
		"garbage":        append(binary.BigEndian.AppendUint32(nil, 5), 0xff, 1, 2, 3, 4),
	} {
		conn, err := net.Dial("tcp", c.addrs[c.signers[0].Public()])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(append(append([]byte(nil), public[:]...), raw...)); err != nil {
			t.Fatal(err)
		}
		if name == "announced only" {
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !isReset(err) {
			t.Errorf("%s: the connection is not closed: %v", name, err)
		}
		conn.Close()
	}
	// A stranger, and one who says nothing.
	for _, who := range [][]byte{make([]byte, 32), nil} {
		conn, err := net.Dial("tcp", c.addrs[c.signers[0].Public()])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(append(who, raw()...)); err != nil {
			t.Fatal(err)
		}
	}
	txs := maker.Some(30)
	c.submit(0, txs...)
	c.agree(txs, 0, 1, 2, 3)
}

func raw() []byte { return binary.BigEndian.AppendUint32(nil, 1) }

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

// A store that fails ends its orderer, and the others go on.
func TestPersistFails(t *testing.T) {
	broken := errors.New("disk on fire")
	c := newCluster(t, 4, func(i int, o *Options) {
		if persist := o.Persist; i == 2 {
			o.Persist = func(blocks []*block.Block) error {
				if blocks[len(blocks)-1].Number >= 3 {
					return broken
				}
				return persist(blocks)
			}
		}
	})
	c.startAll()
	txs := c.maker().Some(60)
	c.submit(0, txs...)
	c.agree(txs, 0, 1, 3)
	n := c.nodes[2]
	err := n.Deliver(t.Context(), 1, func(*block.Block) error { return nil })
	if !errors.Is(err, broken) {
		t.Errorf("Deliver ends with %v", err)
	}
	if err := n.Submit(t.Context(), c.maker().Next()); !errors.Is(err, broken) {
		t.Errorf("Submit says %v", err)
	}
	if err := n.Status().Err; !errors.Is(err, broken) {
		t.Errorf("Status says %v", err)
	}
	if err := n.Replica.Close(); !errors.Is(err, broken) {
		t.Errorf("Close says %v", err)
	}
	c.nodes[2] = nil
	if err := n.blocks.Close(); err != nil {
		t.Error(err)
	}
}

// So do records that cannot be written: nothing leaves an orderer that it could
// forget.
func TestRecordsFail(t *testing.T) {
	toggle := &errorfs.Toggle{Injector: errorfs.ErrInjected.If(errorfs.Writes)}
	c := newCluster(t, 4, func(i int, o *Options) {
		o.FS = vfs.NewMem()
		if i == 1 {
			o.FS = errorfs.Wrap(o.FS, toggle)
		}
	})
	c.startAll()
	maker := c.maker()
	txs := maker.Some(20)
	c.submit(0, txs...)
	c.agree(txs, 0, 1, 2, 3)
	toggle.On()
	more := maker.Some(20)
	c.submit(2, more...)
	txs = append(txs, more...)
	c.agree(txs, 0, 2, 3)
	n := c.nodes[1]
	err := n.Deliver(t.Context(), 1, func(*block.Block) error { return nil })
	if !errors.Is(err, errorfs.ErrInjected) {
		var fault *engineFault
		if !errors.As(err, &fault) {
			t.Errorf("Deliver ends with %v", err)
		}
	}
	if n.Replica.Close() == nil {
		t.Error("closing says nothing about it")
	}
	c.nodes[1] = nil
	if err := n.blocks.Close(); err != nil {
		t.Error(err)
	}
}

// Records come back as they were written, the last ones of each key, in order,
// and without what was forgotten.
func TestRecords(t *testing.T) {
	fs := vfs.NewMem()
	failed := func(err error) { t.Error(err) }
	s, list, err := openRecords(fs, "dir", discardLogger(), failed)
	if err != nil || len(list) > 0 {
		t.Fatal(list, err)
	}
	rec := func(seq uint64, kind uint8, view uint64, value string) ordering.Record {
		return ordering.Record{Key: ordering.RecordKey{Sequence: seq, Kind: kind, View: view}, Value: []byte(value)}
	}
	for _, rd := range []ordering.Ready{
		{Persist: []ordering.Record{rec(0, 1, 0, "view 1"), rec(2, 1, 0, "b"), rec(300, 1, 0, "d"), rec(2, 1, 7, "c")}},
		{Persist: []ordering.Record{rec(0, 1, 0, "view 2"), rec(1, 1, 0, "a")}},
		{Forget: 1},
		{Persist: []ordering.Record{rec(2, 1, 0, "b2")}},
		{},
	} {
		if err := s.write([]ordering.Ready{rd}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s, list, err = openRecords(fs, "dir", discardLogger(), failed)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	want := []ordering.Record{rec(0, 1, 0, "view 2"), rec(2, 1, 0, "b2"), rec(2, 1, 7, "c"), rec(300, 1, 0, "d")}
	if len(list) != len(want) {
		t.Fatalf("records %v, want %v", list, want)
	}
	for i := range want {
		if list[i].Key != want[i].Key || string(list[i].Value) != string(want[i].Value) {
			t.Errorf("record %d is %v %q, want %v %q", i, list[i].Key, list[i].Value, want[i].Key, want[i].Value)
		}
	}
}
