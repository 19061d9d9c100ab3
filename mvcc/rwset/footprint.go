package rwset

import "bytes"

// Span is the half-open interval [Start, End) of keys. A single key is read as
// the span [k, k\x00): see [Point].
type Span struct {
	Start, End []byte
}

// Point returns the span that holds exactly key. The two bounds share memory.
func Point(key []byte) Span {
	end := append(key[:len(key):len(key)], 0)
	return Span{Start: end[:len(key)], End: end}
}

// IsPoint reports whether s holds exactly one possible key.
func (s Span) IsPoint() bool {
	n := len(s.Start)
	return len(s.End) == n+1 && s.End[n] == 0 && bytes.Equal(s.Start, s.End[:n])
}

// Contains reports whether key lies in s.
func (s Span) Contains(key []byte) bool {
	return bytes.Compare(s.Start, key) <= 0 && bytes.Compare(key, s.End) < 0
}

// Empty reports whether no key can lie in s.
func (s Span) Empty() bool { return bytes.Compare(s.Start, s.End) >= 0 }

// PrefixEnd returns the smallest key greater than every key with this prefix,
// or nil when there is none (all bytes 0xff).
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}

// Read is one span that a transaction read.
type Read struct {
	Span
	// Existence marks a read that asked only whether a live row is there.
	Existence bool
}

// Write is one key that a transaction writes.
type Write struct {
	Key []byte
	// Liveness tells that the write changes the key between live and deleted
	// (insert, delete) rather than replacing a live version (update).
	Liveness bool
}

// Footprint is everything that a transaction read and wrote. Order is the
// order of execution and carries no meaning; duplicates are allowed.
type Footprint struct {
	Reads  []Read
	Writes []Write
	// Shared holds read lists that belong to cached plans (the catalog rows a
	// plan was made from). They are shared between transactions: never modify.
	Shared [][]Read
}

// EachRead calls f for every read, shared ones included, until f returns false.
func (fp *Footprint) EachRead(f func(Read) bool) {
	for i := range fp.Reads {
		if !f(fp.Reads[i]) {
			return
		}
	}
	for _, list := range fp.Shared {
		for i := range list {
			if !f(list[i]) {
				return
			}
		}
	}
}
