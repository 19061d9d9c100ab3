package raft

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Forwarding, from an orderer to the leader: the network id (32 bytes), then
// frames of kind (1), length (4) and payload. The leader answers nothing; it
// closes the connection when it is no leader any more, and stops reading while it
// is full. What was on its way then, the sender has in its pool.
const (
	frameTxs  = 1 // transactions, each after its length
	frameDone = 2 // height (8) up to which a node has processed

	frameHead = 1 + 4
	// maxFrameTxs and frameBytes bound a frame; one transaction may exceed the
	// latter.
	maxFrameTxs   = 256
	frameBytes    = 256 << 10
	maxFrameBytes = frameBytes + block.MaxTxBytes + 2*maxFrameTxs
)

// follow forwards what is submitted here to the leader at address, until ctx is
// done or the connection fails.
func (o *Orderer) follow(ctx context.Context, address string) error {
	dialing, cancelDial := context.WithTimeout(ctx, o.opts.ElectionTimeout)
	c, err := o.mux.dial(dialing, channelForward, address)
	cancelDial()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // ends reading and writing
	defer stop()
	defer c.Close()
	go func() {
		defer cancel()
		var none [1]byte
		_, _ = c.Read(none[:]) // returns when the leader hangs up
	}()
	return o.forward(ctx, c)
}

// forward sends the whole pool and then what is added.
func (o *Orderer) forward(ctx context.Context, c *conn) error {
	w := bufio.NewWriterSize(c, frameBytes/4)
	if _, err := w.Write(o.opts.Network[:]); err != nil {
		return err
	}
	var (
		frame  []byte
		items  []item
		cursor uint64
		done   block.Height
	)
	for {
		if now := o.done.Load(); now > done {
			done = now
			frame = appendFrame(frame[:0], frameDone, func(b []byte) []byte { return binary.BigEndian.AppendUint64(b, done) })
			if _, err := w.Write(frame); err != nil {
				return err
			}
		}
		items, cursor = o.pool.take(items[:0], cursor, maxFrameTxs, frameBytes)
		if len(items) > 0 {
			frame = appendFrame(frame[:0], frameTxs, func(b []byte) []byte { return appendTxs(b, items) })
			if _, err := w.Write(frame); err != nil {
				return err
			}
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
		select {
		case <-o.pool.added:
		case <-o.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func appendFrame(b []byte, kind byte, payload func([]byte) []byte) []byte {
	b = append(b, kind, 0, 0, 0, 0)
	b = payload(b)
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-frameHead))
	return b
}

// serveForward takes transactions from another orderer while this one leads.
func (o *Orderer) serveForward(c *conn) error {
	r := o.reign.Load()
	if r == nil {
		return nil // the other one tries again
	}
	stop := context.AfterFunc(r.ctx, func() { _ = c.Close() })
	defer stop()
	in := bufio.NewReaderSize(c, frameBytes/4)
	var network block.Hash
	_ = c.SetReadDeadline(time.Now().Add(greetTimeout))
	if _, err := io.ReadFull(in, network[:]); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Time{})
	if network != o.opts.Network {
		return malformed("an orderer of network %s", network)
	}
	for {
		kind, payload, err := readFrame(in)
		if err != nil {
			return err
		}
		if err := o.takeFrame(r, kind, payload); err != nil {
			return err
		}
	}
}

// readFrame returns the next frame; its memory is not used again.
func readFrame(in io.Reader) (kind byte, payload []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrameBytes {
		return 0, nil, malformed("a frame of %d bytes", n)
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(in, payload)
	return head[0], payload, err
}

func (o *Orderer) takeFrame(r *reign, kind byte, payload []byte) error {
	switch kind {
	case frameTxs:
		items, err := decodeTxs(payload)
		if err != nil {
			return fmt.Errorf("%w: %w", errMalformed, err)
		}
		for i := range items {
			if items[i].tx.Network != o.opts.Network {
				return malformed("a transaction of network %s", items[i].tx.Network)
			}
		}
		return r.offer(items)
	case frameDone:
		if len(payload) != 8 {
			return malformed("a height of %d bytes", len(payload))
		}
		o.raiseDone(binary.BigEndian.Uint64(payload))
		return nil
	default:
		return malformed("frame %d", kind)
	}
}
