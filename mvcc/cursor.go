package mvcc

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// cursor walks the committed rows of a span as a snapshot sees them. One
// cursor, with its Pebble iterator, serves many scans of a transaction.
type cursor struct {
	it      *pebble.Iterator
	at      Snapshot
	reverse bool
	begun   bool
	more    bool // reverse: it stands on the previous key already

	// The current row. In a forward walk it lies in the iterator's memory, as
	// the iterator stays on it; in a reverse walk in the buffers below.
	key, value []byte
	version    Version

	keyBuf, valueBuf []byte
	enc, enc2        []byte
}

// A walk steps over this many versions one by one before it seeks instead. A
// seek costs about as much as ten steps within a block.
const maxSteps = 4

// reset prepares the cursor for a span.
func (c *cursor) reset(start, end []byte, reverse bool) {
	if bytes.Compare(start, reservedEnd) < 0 {
		start = reservedEnd
	}
	c.enc = appendPrefix(c.enc[:0], start)
	c.enc2 = appendPrefix(c.enc2[:0], end)
	c.it.SetBounds(c.enc, c.enc2)
	c.reverse = reverse
	c.begun = false
	c.more = false
}

// next goes to the next row; false at the end.
func (c *cursor) next() (bool, error) {
	if c.reverse {
		return c.nextReverse()
	}
	return c.nextForward()
}

func (c *cursor) nextForward() (bool, error) {
	var ok bool
	if c.begun {
		ok = c.it.NextPrefix()
	} else {
		ok = c.it.First()
		c.begun = true
	}
	for steps := 0; ok; {
		key, block, seq, err := decodeVersioned(c.it.Key())
		if err != nil {
			return false, err
		}
		if !c.at.sees(block, seq) {
			// The next may be an older version of this key or the newest of
			// another: both come back to the top of the loop.
			if steps < maxSteps {
				steps++
				ok = c.it.Next()
			} else {
				steps = 0
				c.enc = appendVersioned(c.enc[:0], key, c.at.Height, c.at.Seq)
				ok = c.it.SeekGE(c.enc)
			}
			continue
		}
		steps = 0
		xid, dead, row, err := c.stored()
		if err != nil {
			return false, err
		}
		if dead {
			ok = c.it.NextPrefix()
			continue
		}
		c.key, c.value, c.version = key, row, Version{Block: block, Seq: seq, XID: xid}
		return true, nil
	}
	return false, c.iterError()
}

// nextReverse meets the versions of a key oldest first. It keeps the last one
// that the snapshot sees.
func (c *cursor) nextReverse() (bool, error) {
	ok := c.more
	if !c.begun {
		ok = c.it.Last()
		c.begun = true
	}
	for steps := 0; ok; {
		key, block, seq, err := decodeVersioned(c.it.Key())
		if err != nil {
			return false, err
		}
		if !c.at.sees(block, seq) { // nor any newer version of this key
			if steps < maxSteps {
				steps++
				ok = c.it.Prev()
			} else {
				steps = 0
				c.enc = appendPrefix(c.enc[:0], key)
				ok = c.it.SeekLT(c.enc)
			}
			continue
		}
		steps = 0
		c.keyBuf = append(c.keyBuf[:0], key...)
		var dead bool
		if dead, ok, err = c.newestBackwards(block, seq); err != nil {
			return false, err
		}
		if dead {
			continue
		}
		c.key, c.more = c.keyBuf, ok
		return true, nil
	}
	return false, c.iterError()
}

// newestBackwards starts on the oldest version of the key in keyBuf, which the
// snapshot sees, keeps the newest that it sees and leaves the key if it has
// none newer. The result says whether what it kept is a tombstone, and whether
// the iterator stands anywhere.
func (c *cursor) newestBackwards(block uint64, seq uint32) (dead, ok bool, err error) {
	for steps := 0; ; steps++ {
		if dead, err = c.keep(block, seq); err != nil {
			return false, false, err
		}
		if steps == maxSteps {
			break
		}
		if ok = c.it.Prev(); !ok {
			return dead, false, c.iterError()
		}
		var key []byte
		if key, block, seq, err = decodeVersioned(c.it.Key()); err != nil {
			return false, false, err
		}
		if !c.at.sees(block, seq) || !bytes.Equal(key, c.keyBuf) {
			return dead, true, nil
		}
	}
	c.enc = appendVersioned(c.enc[:0], c.keyBuf, c.at.Height, c.at.Seq)
	if !c.it.SeekGE(c.enc) {
		if err := c.iterError(); err != nil {
			return false, false, err
		}
		return false, false, fmt.Errorf("mvcc: corruption: key %x lost its versions", c.keyBuf)
	}
	if _, block, seq, err = decodeVersioned(c.it.Key()); err != nil {
		return false, false, err
	}
	if dead, err = c.keep(block, seq); err != nil {
		return false, false, err
	}
	c.enc = appendPrefix(c.enc[:0], c.keyBuf)
	ok = c.it.SeekLT(c.enc)
	return dead, ok, c.iterError()
}

// keep copies the version under the iterator.
func (c *cursor) keep(block uint64, seq uint32) (dead bool, err error) {
	xid, dead, row, err := c.stored()
	if err != nil {
		return false, err
	}
	c.valueBuf = append(c.valueBuf[:0], row...)
	c.value, c.version = c.valueBuf, Version{Block: block, Seq: seq, XID: xid}
	return dead, nil
}

func (c *cursor) stored() (xid uint64, dead bool, row []byte, err error) {
	v, err := c.it.ValueAndErr()
	if err != nil {
		return 0, false, nil, fmt.Errorf("mvcc: scan: %w", err)
	}
	return decodeValue(v)
}

func (c *cursor) iterError() error {
	if err := c.it.Error(); err != nil {
		return fmt.Errorf("mvcc: scan: %w", err)
	}
	return nil
}
