package chain

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
)

// ScrubOptions bound what a scrub costs.
type ScrubOptions struct {
	// BytesPerSecond bounds how fast rows are read; 16 MB if 0.
	BytesPerSecond int64
}

// Damage is a row that is not what the chain wrote.
type Damage struct {
	Table, Key string // as SQL shows them; Key names the first one known to be wrong
	Raw        []byte // the key as it is stored
	Block      block.Height
	Reason     string
}

// Error names table, key and block.
func (d *Damage) Error() string {
	return fmt.Sprintf("table %s, key %s, written by block %d: %s", d.Table, d.Key, d.Block, d.Reason)
}

// ScrubReport says what a scrub has read.
type ScrubReport struct {
	Height block.Height // the state after this block was looked at
	Tables int
	Rows   uint64
	Bytes  uint64
	Damage []*Damage // by table; empty if all holds
}

// Scrub reads all live rows as of the last block, computes the digests of the
// tables anew and compares them with those that the state hash contains. For a
// table that does not fit it finds out which row it is. Blocks are processed
// meanwhile, and rows of later ones are not looked at.
func (c *Chain) Scrub(ctx context.Context, opts ScrubOptions) (*ScrubReport, error) {
	if opts.BytesPerSecond == 0 {
		opts.BytesPerSecond = 16 << 20
	}
	height, want := c.digestsNow()
	r := &ScrubReport{Height: height}
	pace := &pacer{ctx: ctx, rate: opts.BytesPerSecond, start: time.Now()}
	got := newTally()
	err := c.eachLive(everything, height, func(key []byte, v mvcc.Version, value []byte) error {
		r.Rows++
		r.Bytes += uint64(len(key) + len(value))
		if !chainsOwn(tableOf(key)) {
			got.add(key, v, value)
		}
		return pace.spent(len(key) + len(value))
	})
	if err != nil {
		return r, err
	}
	for id := range want { // any order: sum makes what is missing
		got.sum(id)
	}
	for _, id := range slices.Sorted(maps.Keys(got.sums)) {
		r.Tables++
		have := block.Hash{}
		if s := got.sums[id]; !s.IsZero() {
			have = s.Hash()
		}
		if have == want[id] {
			continue
		}
		d, err := c.damageIn(ctx, id, height)
		if err != nil {
			return r, err
		}
		r.Damage = append(r.Damage, d)
	}
	return r, c.scrubLedger(pace, height, r)
}

// digestsNow are the digests of the tables, hashed, as of the last block.
func (c *Chain) digestsNow() (block.Height, map[tableID]block.Hash) {
	c.processMu.Lock()
	defer c.processMu.Unlock()
	return c.tip.height, maps.Clone(c.tables.hashes)
}

// pacer keeps a walk at a rate.
type pacer struct {
	ctx    context.Context
	rate   int64
	start  time.Time
	read   uint64 // bytes in all
	looked uint64 // as of the last look at the clock
}

// spent notes that so many bytes were read, and waits if the walk is ahead of its
// rate.
func (p *pacer) spent(bytes int) error {
	const often = 256 << 10
	if p.read += uint64(bytes); p.read-p.looked < often {
		return nil
	}
	p.looked = p.read
	due := time.Duration(float64(p.read) / float64(p.rate) * float64(time.Second))
	wait := due - time.Since(p.start)
	if wait <= 0 {
		return p.ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// damageIn finds the row of a table that is wrong: the first block whose writes
// are not those of its write set, in it the transaction, and of that one the row,
// by executing it again on the state before if that is possible.
func (c *Chain) damageIn(ctx context.Context, id tableID, height block.Height) (*Damage, error) {
	for h := block.Height(0); h <= height; h++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := c.damageOf(h, id)
		if found != nil || err != nil {
			return found, err
		}
	}
	span := tableSpan(id)
	table, _ := c.describe(height, span.Start, nil)
	return &Damage{Table: table, Key: "unknown", Raw: span.Start, Block: height,
		Reason: "the rows are those of the write sets and do not fit the digest of the table"}, nil
}

// written is a stored version.
type written struct {
	key, value []byte
	dead       bool
}

// damageOf compares what a block has left in the store with its write set. Only
// damage in the table counts.
func (c *Chain) damageOf(height block.Height, id tableID) (*Damage, error) {
	_, entries, err := c.step(height)
	if err != nil {
		return nil, err
	}
	bySeq := map[uint32][]written{}
	xids := map[uint32]uint64{}
	err = c.store.EachVersion(everything, height, height, func(key []byte, v mvcc.Version, dead bool, value []byte) error {
		if !chainsOwn(tableOf(key)) {
			bySeq[v.Seq] = append(bySeq[v.Seq], written{bytes.Clone(key), bytes.Clone(value), dead})
			xids[v.Seq] = v.XID
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var digest txDigest
	for ; len(entries) > 0; entries = entries[writeSetEntry:] {
		seq, xid := binary.BigEndian.Uint32(entries), binary.BigEndian.Uint64(entries[4:])
		want := block.Hash(entries[12:])
		rows := bySeq[seq]
		delete(bySeq, seq)
		digest.begin()
		for _, w := range rows {
			digest.write(w.key, w.value, w.dead)
		}
		if digest.sum() == want && (len(rows) == 0 || xids[seq] == xid) {
			continue
		}
		if d, err := c.blame(height, xid, want, rows, id); d != nil || err != nil {
			return d, err
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(bySeq)) {
		for _, w := range bySeq[seq] {
			if tableOf(w.key) == id {
				return c.damage(height, w.key, w.value, "no transaction of the block wrote it"), nil
			}
		}
	}
	return nil, nil
}

func (c *Chain) damage(height block.Height, key, value []byte, reason string) *Damage {
	d := &Damage{Raw: key, Block: height, Reason: reason}
	d.Table, d.Key = c.describe(c.Height(), key, value)
	return d
}

// blame says which of the rows that a transaction left is not what it wrote.
func (c *Chain) blame(height block.Height, xid uint64, want block.Hash, rows []written, id tableID) (*Damage, error) {
	_, position := block.SplitXID(xid)
	truth, err := c.executeAgain(height, position, want)
	if err != nil {
		return nil, err
	}
	if truth == nil {
		for _, w := range rows {
			if tableOf(w.key) == id {
				return c.damage(height, w.key, w.value,
					fmt.Sprintf("one of the %d rows that transaction %d wrote was changed; this is the first in the table", len(rows), xid)), nil
			}
		}
		return nil, nil
	}
	for i, j := 0, 0; i < len(truth) || j < len(rows); {
		var d *Damage
		switch {
		case j == len(rows) || i < len(truth) && bytes.Compare(truth[i].key, rows[j].key) < 0:
			d = c.damage(height, truth[i].key, truth[i].value, "its version is missing")
			i++
		case i == len(truth) || bytes.Compare(truth[i].key, rows[j].key) > 0:
			d = c.damage(height, rows[j].key, rows[j].value, "its transaction did not write it")
			j++
		default:
			if truth[i].dead != rows[j].dead || !bytes.Equal(truth[i].value, rows[j].value) {
				d = c.damage(height, truth[i].key, truth[i].value, "it was changed")
			}
			i, j = i+1, j+1
		}
		if d != nil && tableOf(d.Raw) == id {
			return d, nil
		}
	}
	return nil, nil
}

// executeAgain executes a transaction of a block on its snapshot and returns its
// writes if their digest is the one that the block recorded; nil if it is not:
// it ran in a later round or in the system phase, or it read what is damaged.
func (c *Chain) executeAgain(height block.Height, position uint32, want block.Hash) ([]written, error) {
	if height == 0 || position == 0 {
		return nil, nil
	}
	b, err := c.blocks.Get(height)
	if err != nil {
		return nil, err
	}
	if int(position) > len(b.Txs) || isSystem(b.Txs[position-1]) {
		return nil, nil
	}
	tx := b.Txs[position-1]
	x := execution{tx: tx, id: tx.ID(), position: position, xid: block.XID(height, position), snapshot: c.snapshot(tx, height)}
	v, err := c.view(x.snapshot)
	if err != nil {
		return nil, err
	}
	var digest txDigest
	if err := c.attempt(&x, c.store.Begin(mvcc.AsOf(x.snapshot), c.number(&x)), v, &digest); err != nil || x.digest != want {
		return nil, err
	}
	truth := []written{}
	err = x.work.EachWrite(func(key, value []byte, dead bool) error {
		truth = append(truth, written{key, value, dead})
		return nil
	})
	return truth, err
}

// What a block and a row of pgledger cost to read, about, for the rate of a scrub.
const (
	ledgerBlockBytes = 256
	ledgerRowBytes   = 256
)

// scrubLedger compares the rows of pgledger with the outcomes that the state
// hashes contain.
func (c *Chain) scrubLedger(pace *pacer, height block.Height, r *ScrubReport) error {
	for h := block.Height(1); h <= height; h++ {
		if err := pace.ctx.Err(); err != nil {
			return err
		}
		step, err := c.Step(h)
		if err != nil {
			return err
		}
		leaves, err := c.leaves(h, &step)
		var disk syscall.Errno
		switch {
		case errors.As(err, &disk): // it may be readable another time
			return err
		case err != nil:
			r.Damage = append(r.Damage, &Damage{Table: ledgerTable.table.Name, Key: fmt.Sprintf("block %d", h),
				Raw: ledgerTable.key(block.XID(h, 0)), Block: h, Reason: err.Error()})
			return nil
		}
		if err := pace.spent(ledgerBlockBytes + ledgerRowBytes*len(leaves)); err != nil {
			return err
		}
	}
	return nil
}
