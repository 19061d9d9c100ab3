package cutter

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Config says how large blocks become.
type Config struct {
	MaxTxs   int   // transactions of a block
	MaxBytes int   // bytes of its transactions; a larger one is alone in its block
	Timeout  int64 // microseconds that the first one waits at most

	// Pipeline is the number of blocks to have in flight before blocks are
	// filled; 0 cuts by size and timeout only.
	Pipeline int
	// MaxInFlight is the number of blocks in flight at which nothing more is
	// cut; 0 is no limit.
	MaxInFlight int
}

// FromParams returns the configuration of a network, with a pipeline of one
// block and no limit in flight.
func FromParams(p *block.Params) Config {
	return Config{
		MaxTxs:   int(p.BlockTxs),
		MaxBytes: int(p.BlockBytes),
		Timeout:  int64(p.BlockTimeoutMicros),
		Pipeline: 1,
	}
}

// Validate reports why a cutter cannot work like this.
func (c *Config) Validate() error {
	switch {
	case c.MaxTxs < 1 || c.MaxTxs > block.MaxTxsPerBlock:
		return fmt.Errorf("cutter: %d transactions a block, not from 1 to %d", c.MaxTxs, block.MaxTxsPerBlock)
	case c.MaxBytes < 1 || c.MaxBytes > block.MaxBlockBytes-block.MaxCertificateBytes-4096:
		return fmt.Errorf("cutter: blocks of %d bytes leave no room for anything else", c.MaxBytes)
	case c.Timeout < 0 || c.Pipeline < 0 || c.MaxInFlight < 0:
		return fmt.Errorf("cutter: a limit is negative")
	case c.MaxInFlight > 0 && c.MaxInFlight < c.Pipeline:
		return fmt.Errorf("cutter: a pipeline of %d blocks exceeds the limit of %d in flight", c.Pipeline, c.MaxInFlight)
	}
	return nil
}

// Reason says why a block was cut.
type Reason uint8

// The reasons, in the order in which they are looked for.
const (
	Size    Reason = iota + 1 // it is full
	Message                   // a time-to-cut message
	Timeout                   // its first transaction has waited long enough
	Idle                      // nothing to wait for
	Flush                     // the service ends
)

var reasonNames = [...]string{Size: "size", Message: "message", Timeout: "timeout", Idle: "idle", Flush: "flush"}

// String returns a short name for metrics.
func (r Reason) String() string {
	if int(r) < len(reasonNames) && r > 0 {
		return reasonNames[r]
	}
	return fmt.Sprintf("cutter.Reason(%d)", uint8(r))
}

// SetLimits changes size and timeout of the blocks that are cut from now on. What
// waits keeps its place.
func (c *Cutter) SetLimits(maxTxs, maxBytes int, timeout int64) {
	if c.cfg.MaxTxs == maxTxs && c.cfg.MaxBytes == maxBytes && c.cfg.Timeout == timeout {
		return
	}
	c.cfg.MaxTxs, c.cfg.MaxBytes, c.cfg.Timeout = maxTxs, maxBytes, timeout
	c.fill, c.bytes, c.full = 0, 0, false
	c.grow()
}

// Batch is the content of a block: at least one transaction, in the order of
// arrival.
type Batch struct {
	Number uint64 // of the block
	Txs    []*block.Tx
	Bytes  int // that the transactions take in a block
	Reason Reason
}

// Cutter holds the transactions that wait for a block. Make one with [New].
type Cutter struct {
	cfg      Config
	number   uint64 // of the block to be cut next
	message  bool   // a time-to-cut message for it has come
	inFlight int

	// waiting[taken:] wait, in the order of arrival. fill of them fit into one
	// block and have bytes bytes; full tells that no other one may join them.
	waiting []entry
	taken   int
	fill    int
	bytes   int
	full    bool
}

type entry struct {
	tx      *block.Tx
	size    int
	arrived int64
}

// New makes a cutter whose first block has the given number. The configuration
// must be valid.
func New(cfg Config, number uint64) *Cutter {
	return &Cutter{cfg: cfg, number: number}
}

// Add appends a transaction that arrived now.
func (c *Cutter) Add(tx *block.Tx, now int64) {
	c.waiting = append(c.waiting, entry{tx, block.TxSizeInBlock(tx), now})
	c.grow()
}

// InFlight sets how many blocks are cut and not done.
func (c *Cutter) InFlight(blocks int) { c.inFlight = blocks }

// TimeToCut takes a message that wants the block of this number cut. It counts
// if that is the next block and transactions wait for it.
func (c *Cutter) TimeToCut(number uint64) {
	if number == c.number && c.Waiting() > 0 {
		c.message = true
	}
}

// Waiting returns how many transactions wait.
func (c *Cutter) Waiting() int { return len(c.waiting) - c.taken }

// Full reports whether the next block is full, so that another transaction
// would wait behind it. After Cut had nothing that is so at the limit of blocks
// in flight only: the time to take no more.
func (c *Cutter) Full() bool { return c.full }

// Cut returns the next block that is due now, if there is one. The caller that
// puts it to work counts it as in flight.
func (c *Cutter) Cut(now int64) (Batch, bool) {
	if c.Waiting() == 0 || c.cfg.MaxInFlight > 0 && c.inFlight >= c.cfg.MaxInFlight {
		return Batch{}, false
	}
	switch {
	case c.full:
		return c.take(Size), true
	case c.message:
		return c.take(Message), true
	case now-c.waiting[c.taken].arrived >= c.cfg.Timeout:
		return c.take(Timeout), true
	case c.inFlight < c.cfg.Pipeline:
		return c.take(Idle), true
	}
	return Batch{}, false
}

// Flush returns what waits, whatever the limits in flight: one block for each
// call until nothing is left.
func (c *Cutter) Flush() (Batch, bool) {
	if c.Waiting() == 0 {
		return Batch{}, false
	}
	return c.take(Flush), true
}

// Deadline returns the time from which on Cut has a block if nothing else
// happens; false if time alone changes nothing.
func (c *Cutter) Deadline() (int64, bool) {
	if c.Waiting() == 0 || c.cfg.MaxInFlight > 0 && c.inFlight >= c.cfg.MaxInFlight {
		return 0, false
	}
	return c.waiting[c.taken].arrived + c.cfg.Timeout, true
}

// grow lets waiting transactions join the block while they fit.
func (c *Cutter) grow() {
	for !c.full && c.taken+c.fill < len(c.waiting) {
		size := c.waiting[c.taken+c.fill].size
		if c.fill > 0 && c.bytes+size > c.cfg.MaxBytes {
			c.full = true
			return
		}
		c.fill++
		c.bytes += size
		c.full = c.fill == c.cfg.MaxTxs || c.bytes >= c.cfg.MaxBytes
	}
}

// take cuts the block and begins the next one with what is left.
func (c *Cutter) take(reason Reason) Batch {
	b := Batch{Number: c.number, Txs: make([]*block.Tx, c.fill), Bytes: c.bytes, Reason: reason}
	for i := range b.Txs {
		b.Txs[i] = c.waiting[c.taken+i].tx
	}
	clear(c.waiting[c.taken : c.taken+c.fill])
	c.taken += c.fill
	if c.taken*2 >= len(c.waiting) { // moving costs no more than what was taken
		n := copy(c.waiting, c.waiting[c.taken:])
		clear(c.waiting[n:])
		c.waiting, c.taken = c.waiting[:n], 0
	}
	c.number++
	c.message, c.full, c.fill, c.bytes = false, false, 0, 0
	c.grow()
	return b
}
