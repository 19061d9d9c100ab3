package mvcc

// arena hands out memory for small byte strings of one transaction, chunk by
// chunk. Nothing in it is ever reused: slices stay valid for as long as somebody
// holds them, and then the collector takes the chunk.
type arena struct {
	chunk []byte
	next  int
}

const (
	arenaFirst = 512
	arenaMost  = 64 << 10
)

// alloc returns n bytes, with no capacity beyond.
func (a *arena) alloc(n int) []byte {
	if n > cap(a.chunk)-len(a.chunk) {
		if n > arenaMost/4 {
			return make([]byte, n) // its own piece: do not waste the chunk's rest
		}
		a.next = min(max(a.next*2, arenaFirst), arenaMost)
		a.chunk = make([]byte, 0, max(a.next, n))
	}
	at := len(a.chunk)
	a.chunk = a.chunk[:at+n]
	return a.chunk[at : at+n : at+n]
}

// copy returns b's bytes in the arena.
func (a *arena) copy(b []byte) []byte {
	c := a.alloc(len(b))
	copy(c, b)
	return c
}
