package sql

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Private is schema private: what one organization keeps for itself, in a store
// of its own whose blocks are local commits. A transaction works on a snapshot
// and is validated when it commits: if what it read or wrote has changed since,
// it fails with 40001, so that what commits is serializable in commit order.
//
// Transactions that wait for the disk meanwhile are committed as one block.
type Private struct {
	store    *mvcc.Store
	catalogs catalog.PrivateCache

	queueMu sync.Mutex
	queue   []*commitRequest
	// commitMu is held by whoever commits a block, for all that wait.
	commitMu sync.Mutex

	// turn has room for one: the statement that is being tried again.
	turn chan struct{}

	xids     atomic.Uint64
	sessions atomic.Uint64 // that have made temporary objects
	// closing is held while objects of ended sessions are dropped; closed: what is
	// left of them goes at the next start.
	closing   sync.Mutex
	closed    bool
	oids      counter
	rows      counter
	sequences sequences
}

// commitRequest is a transaction that waits to be committed, or a single row
// that is written outside of transactions.
type commitRequest struct {
	txn        *mvcc.Txn
	footprint  *rwset.Footprint
	key, value []byte
	done       bool
	err        error
}

// counterTable is the table OID under which the private store keeps what is
// outside of transactions: counters and the states of sequences.
const counterTable catalog.OID = 2

const (
	oidCounter      catalog.OID = 1
	rowCounter      catalog.OID = 2
	sequenceCounter catalog.OID = 3 // followed by the sequence's state OID
)

// The counters set aside so many numbers with every write.
const (
	oidReserve = 64
	rowReserve = 1 << 20
)

// NewPrivate opens schema private in a store, which must sync its commits.
func NewPrivate(store *mvcc.Store) (*Private, error) {
	p := &Private{store: store, turn: make(chan struct{}, 1)}
	p.oids = counter{private: p, key: catalog.Prefix(counterTable, oidCounter), reserve: oidReserve}
	p.rows = counter{private: p, key: catalog.Prefix(counterTable, rowCounter), reserve: rowReserve}
	p.sequences = sequences{private: p, states: map[catalog.OID]*sequenceState{}}
	if err := p.oids.load(int64(catalog.FirstPrivateOID)); err != nil {
		return nil, err
	}
	if err := p.rows.load(1); err != nil {
		return nil, err
	}
	p.xids.Store((store.Height() + 1) << 20)
	return p, p.eraseTemp(func(string) bool { return true })
}

// Close keeps what the sequences have set aside and not given out. The store
// stays open.
func (p *Private) Close() error {
	p.closing.Lock()
	defer p.closing.Unlock()
	p.closed = true
	return p.sequences.flush()
}

// begin starts a local transaction on the newest state.
func (p *Private) begin() *mvcc.Txn {
	return p.store.Begin(mvcc.AsOf(p.store.Height()), p.xids.Add(1))
}

// commit makes the writes of a transaction durable: 40001 if it cannot be
// serialized behind those that committed since it began.
func (p *Private) commit(txn *mvcc.Txn) error {
	if txn.Writes() == 0 {
		return nil // it read one state, whatever came later
	}
	return p.submit(&commitRequest{txn: txn, footprint: txn.Footprint()})
}

// put writes one row outside of transactions.
func (p *Private) put(key, value []byte) error {
	return p.submit(&commitRequest{key: key, value: value})
}

// submit waits until a request is done: by another one that commits, or by
// itself for all that wait.
func (p *Private) submit(r *commitRequest) error {
	p.queueMu.Lock()
	p.queue = append(p.queue, r)
	p.queueMu.Unlock()
	p.commitMu.Lock()
	defer p.commitMu.Unlock()
	if !r.done {
		p.commitGroup(r)
	}
	return r.err
}

// commitGroup commits the waiting requests that do not depend on one another as
// one block, first among them. The others stay in the queue: their own
// goroutines wait for the lock.
func (p *Private) commitGroup(first *commitRequest) {
	p.queueMu.Lock()
	waiting := p.queue
	p.queue = nil
	p.queueMu.Unlock()
	g := &commitGroup{store: p.store, written: map[string]struct{}{}}
	later := g.collect(first, waiting)
	if err := g.commit(); err != nil {
		for _, r := range g.members {
			r.err = err
		}
	}
	p.queueMu.Lock()
	p.queue = append(later, p.queue...)
	p.queueMu.Unlock()
}

// commitGroup is one block in the making.
type commitGroup struct {
	store   *mvcc.Store
	members []*commitRequest
	written map[string]struct{} // keys
}

// maxGroup bounds the transactions of one block.
const maxGroup = 256

// collect decides on the requests in order and returns those that have to wait
// for the next block.
func (g *commitGroup) collect(first *commitRequest, waiting []*commitRequest) (later []*commitRequest) {
	g.decide(first)
	for _, r := range waiting {
		switch {
		case r == first:
		case len(g.members) == maxGroup || g.meets(r):
			later = append(later, r)
		default:
			g.decide(r)
		}
	}
	return later
}

// decide validates a request against what is committed.
func (g *commitGroup) decide(r *commitRequest) {
	r.done = true
	if r.txn == nil {
		g.written[string(r.key)] = struct{}{}
		g.members = append(g.members, r)
		return
	}
	_, changed, err := g.store.Changed(r.footprint, r.txn.Snapshot().Height, g.store.Height())
	switch {
	case err != nil:
		r.err = err
	case changed:
		r.err = errConcurrent()
	default:
		for i := range r.footprint.Writes {
			g.written[string(r.footprint.Writes[i].Key)] = struct{}{}
		}
		g.members = append(g.members, r)
	}
}

func errConcurrent() error {
	return pgerr.New(pgerr.SerializationFailure, "could not serialize access due to concurrent update").
		WithHint("The transaction might succeed if retried.")
}

// meets tells that a request read or wrote what a member of the group writes.
func (g *commitGroup) meets(r *commitRequest) bool {
	if r.txn == nil {
		_, ok := g.written[string(r.key)]
		return ok
	}
	for i := range r.footprint.Writes {
		if _, ok := g.written[string(r.footprint.Writes[i].Key)]; ok {
			return true
		}
	}
	met := false
	r.footprint.EachRead(func(read rwset.Read) bool {
		if read.IsPoint() {
			_, met = g.written[string(read.Start)]
			return !met
		}
		for key := range g.written { // any order: whether one is there
			if key >= string(read.Start) && key < string(read.End) {
				met = true
				return false
			}
		}
		return true
	})
	return met
}

// commit writes the block.
func (g *commitGroup) commit() error {
	if len(g.members) == 0 {
		return nil
	}
	height := g.store.Height() + 1
	b := g.store.NewBlockBatch(height)
	for i, r := range g.members {
		var err error
		if r.txn == nil {
			err = b.Put(r.key, r.value, uint32(i+1), height<<20|uint64(i+1))
		} else {
			err = b.Apply(r.txn, uint32(i+1))
		}
		if err != nil {
			return fmt.Errorf("sql: private commit: %w", err)
		}
	}
	return g.store.Commit(b, true)
}

// counter gives out numbers that never come again. It is outside of
// transactions, and a crash skips what was set aside.
type counter struct {
	private *Private
	key     []byte
	reserve int64

	mu         sync.Mutex
	next, most int64 // most: what is set aside ends before it
}

func (c *counter) load(first int64) error {
	c.next, c.most = first, first
	value, found, err := c.private.get(c.key)
	if err != nil || !found {
		return err
	}
	if len(value) != 8 {
		return fmt.Errorf("sql: damaged counter %x", value)
	}
	c.next = int64(binary.BigEndian.Uint64(value))
	c.most = c.next
	return nil
}

func (c *counter) take() (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == c.most {
		most := c.most + c.reserve
		if err := c.private.put(c.key, binary.BigEndian.AppendUint64(nil, uint64(most))); err != nil {
			return 0, err
		}
		c.most = most
	}
	c.next++
	return c.next - 1, nil
}

// get reads a row that is outside of transactions.
func (p *Private) get(key []byte) ([]byte, bool, error) {
	txn := p.store.Begin(mvcc.AsOf(p.store.Height()), 0)
	defer txn.Close()
	value, _, ok, err := txn.Get(key, mvcc.ReadUnrecorded)
	return value, ok, err
}

// nextOID numbers a new object.
func (p *Private) nextOID() (catalog.OID, error) {
	n, err := p.oids.take()
	if err == nil && n >= int64(catalog.FirstUserOID)>>1 { // below the twins of pg_class
		err = fmt.Errorf("sql: all object identifiers of schema private are used up")
	}
	return catalog.OID(n), err
}

// nextRowID identifies a row of a table without a primary key.
func (p *Private) nextRowID() (int64, error) { return p.rows.take() }
