package raft

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// Reading blocks: the network id (32 bytes), the first and the last height (8
// each). The answer is blocks, each after its length (4), as far as the other
// orderer has them durable, then a length of 0.
const (
	fetchRequestBytes = 32 + 8 + 8
	// fetchIdle is how long either side may make the other one wait.
	fetchIdle = 10 * time.Second
	// fetchBackoff is the longest pause before all orderers are asked again.
	fetchBackoff = time.Second
)

// fetchUpTo brings the store to a state that others have reached. It goes on
// until that is done or the service ends; another error says that the
// chains differ.
func (o *Orderer) fetchUpTo(target *state) error {
	pause := 10 * time.Millisecond
	for o.tail.Height() < target.number {
		prev, err := o.durable(o.tail.Height())
		if err != nil {
			return err
		}
		before := prev.Number
		for _, p := range o.others() {
			f := fetcher{o: o, prev: prev, target: target}
			err := f.from(p)
			if errors.Is(err, errForked) {
				return err
			}
			if err != nil && o.routing.Err() == nil {
				o.log.Warn("fetching blocks", "from", p, "block", f.prev.Number+1, "error", err)
			}
			prev = f.prev
		}
		if prev.Number > before { // wait for the store to have them
			if err := o.tail.Wait(o.routing, o.end, prev.Number); err != nil {
				return err
			}
			continue
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, fetchBackoff)
		case <-o.routing.Done():
			return o.routing.Err()
		case <-o.end.Done():
			return context.Cause(o.end)
		}
	}
	return nil
}

// others returns the addresses of the other orderers, the leader's first.
func (o *Orderer) others() []string {
	select {
	case <-o.started:
	case <-o.routing.Done():
		return nil
	}
	var list []string
	leader, id := o.raft.LeaderWithID()
	if leader != "" && id != o.id {
		list = append(list, string(leader))
	}
	for _, s := range o.raft.GetConfiguration().Configuration().Servers {
		if s.ID != o.id && s.Address != leader {
			list = append(list, string(s.Address))
		}
	}
	return list
}

var errForked = errors.New("raft: the chain of another orderer differs")

// fetcher reads the blocks after prev.
type fetcher struct {
	o      *Orderer
	prev   *block.Block // the last one that was handed to the persister
	target *state
}

// from reads what one orderer has.
func (f *fetcher) from(address string) error {
	if f.prev.Number >= f.target.number {
		return nil
	}
	ctx, cancel := context.WithTimeout(f.o.routing, fetchIdle)
	defer cancel()
	c, err := f.o.mux.dial(ctx, channelBlocks, address)
	if err != nil {
		return err
	}
	defer c.Close()
	request := make([]byte, 0, fetchRequestBytes)
	request = append(request, f.o.opts.Network[:]...)
	request = binary.BigEndian.AppendUint64(request, f.prev.Number+1)
	request = binary.BigEndian.AppendUint64(request, f.target.number)
	_ = c.SetDeadline(time.Now().Add(fetchIdle))
	if _, err := c.Write(request); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for f.prev.Number < f.target.number {
		_ = c.SetDeadline(time.Now().Add(fetchIdle))
		b, err := readBlock(in)
		if err != nil || b == nil {
			return err
		}
		if err := f.take(b); err != nil {
			return err
		}
	}
	return nil
}

// readBlock reads one block; nil at the end.
func readBlock(in io.Reader) (*block.Block, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n == 0 {
		return nil, nil
	}
	if n > block.MaxBlockBytes {
		return nil, malformed("a block of %d bytes", n)
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(in, raw); err != nil {
		return nil, err
	}
	return block.DecodeBlock(raw)
}

// take checks a block and hands it to the persister. It keeps the certificate of
// the orderer it comes from.
func (f *fetcher) take(b *block.Block) error {
	if err := b.Follows(f.prev.Number, f.prev.Hash(), f.prev.Timestamp); err != nil {
		return err
	}
	if err := f.o.config.Verify(b, f.prev.Timestamp); err != nil {
		return err
	}
	if b.Number == f.target.number && b.Hash() != f.target.hash {
		return fmt.Errorf("%w: block %d has hash %s, that of the snapshot is %s", errForked, b.Number, b.Hash(), f.target.hash)
	}
	if !f.o.push(b) {
		return context.Cause(f.o.end)
	}
	f.o.pool.remove(itemsOf(b))
	f.prev = b
	return f.o.config.Advance(b)
}

// serveBlocks answers another orderer that reads blocks.
func (o *Orderer) serveBlocks(c *conn) error {
	var request [fetchRequestBytes]byte
	_ = c.SetDeadline(time.Now().Add(fetchIdle))
	if _, err := io.ReadFull(c, request[:]); err != nil {
		return err
	}
	if block.Hash(request[:32]) != o.opts.Network {
		return malformed("an orderer of network %x", request[:32])
	}
	from, to := binary.BigEndian.Uint64(request[32:]), binary.BigEndian.Uint64(request[40:])
	out := bufio.NewWriterSize(c, frameBytes/4)
	for h := from; h <= min(to, o.tail.Height()); h++ {
		b, err := o.durable(h)
		if err != nil {
			o.log.Error("reading a block for another orderer", "block", h, "error", err)
			return err
		}
		_ = c.SetDeadline(time.Now().Add(fetchIdle))
		raw := b.Encode()
		if _, err := out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(raw)))); err != nil {
			return err
		}
		if _, err := out.Write(raw); err != nil {
			return err
		}
	}
	if _, err := out.Write(make([]byte, 4)); err != nil {
		return err
	}
	return out.Flush()
}

// serverID is how the library names an orderer.
func serverID(key identity.PublicKey) hraft.ServerID { return hraft.ServerID(key.String()) }
