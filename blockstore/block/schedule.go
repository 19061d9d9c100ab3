package block

import (
	"fmt"
	"sort"
)

// Schedule is the configurations of a chain: which one the next must follow, and
// which one is in force at a height. It is a function of the blocks; orderers,
// block stores and nodes that were given the same ones have the same. It is not
// safe for concurrent use.
//
// A configuration transaction in block b is in force from block b + window + 1
// on, where window is [Ordering.Window]: orderers may be working on that many
// blocks after b when they learn what is in it.
type Schedule struct {
	next    Height // number of the next block
	entries []Scheduled
}

// Scheduled is a configuration with its place on the chain.
type Scheduled struct {
	Config *Config
	ID     Hash
	Block  Height // whose transaction brought it; 0 for the genesis
	From   Height // first block that it certifies
}

// NewSchedule is that of a network after block 0.
func NewSchedule(g *Genesis) *Schedule {
	c := g.Config()
	return &Schedule{next: 1, entries: []Scheduled{{Config: c, ID: c.ID()}}}
}

// Clone returns a copy that can be advanced by itself.
func (s *Schedule) Clone() *Schedule {
	return &Schedule{next: s.next, entries: s.entries[:len(s.entries):len(s.entries)]}
}

// Next is the number of the block that Advance takes next.
func (s *Schedule) Next() Height { return s.next }

// Latest is the configuration that the next one must follow. It need not be in
// force yet.
func (s *Schedule) Latest() *Config { return s.entries[len(s.entries)-1].Config }

// Entries lists all configurations by number. They are shared: do not modify.
func (s *Schedule) Entries() []Scheduled { return s.entries }

// At returns the configuration in force at a height up to Next + window. Blocks
// after that may be in force of one that is not known yet.
func (s *Schedule) At(height Height) *Scheduled {
	i := sort.Search(len(s.entries), func(i int) bool { return s.entries[i].From > height })
	return &s.entries[i-1]
}

// Check reports why the configuration transaction would not be accepted in the
// next block.
func (s *Schedule) Check(tx *ConfigTx) error {
	_, err := s.Latest().Verify(tx)
	return err
}

// Advance takes the next block and returns, for each of its transactions, nil or
// why it is a configuration transaction without effect; the list is nil if there
// is none of these. The transactions take effect in block order.
func (s *Schedule) Advance(b *Block) (refused []error, err error) {
	if b.Number != s.next {
		return nil, fmt.Errorf("block: schedule expects block %d, got %d", s.next, b.Number)
	}
	s.next++
	for i, tx := range b.Txs {
		if tx.Config == nil {
			continue
		}
		if err := s.add(tx.Config, b.Number); err != nil {
			if refused == nil {
				refused = make([]error, len(b.Txs))
			}
			refused[i] = err
		}
	}
	return refused, nil
}

func (s *Schedule) add(tx *ConfigTx, height Height) error {
	c, err := s.Latest().Verify(tx)
	if err != nil {
		return err
	}
	s.entries = append(s.entries, Scheduled{Config: c, ID: c.ID(), Block: height, From: height + c.Ordering.Window + 1})
	return nil
}

// Skip brings a schedule to a height between which and Next there is no
// configuration transaction.
func (s *Schedule) Skip(next Height) { s.next = max(s.next, next) }

// Restore adds a configuration that the chain accepted in a block, without its
// signatures: from a store that is trusted. It must follow the latest one.
func (s *Schedule) Restore(c *Config, height Height) error {
	if err := s.Latest().follows(c); err != nil {
		return fmt.Errorf("block: restoring configurations: %w", err)
	}
	s.entries = append(s.entries, Scheduled{Config: c, ID: c.ID(), Block: height, From: height + c.Ordering.Window + 1})
	return nil
}

// Certify reports why the next block was not made by the orderers of the
// configuration in force: its header names that, and its certificate is theirs.
// prevTimestamp is as in [Block.VerifyCertificate].
func (s *Schedule) Certify(b *Block, prevTimestamp int64) error {
	if b.Number != s.next {
		return fmt.Errorf("block: schedule expects block %d, got %d", s.next, b.Number)
	}
	now := s.At(b.Number)
	if b.ConfigID != now.ID {
		return fmt.Errorf("block: block names configuration %s, in force is configuration %d, %s", b.ConfigID, now.Config.Number, now.ID)
	}
	return b.VerifyCertificate(&now.Config.Orderers, now.Config.Network, prevTimestamp)
}
