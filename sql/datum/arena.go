package datum

// Clone returns d with its own copy of the bytes behind it.
func Clone(d Datum) Datum {
	if d.p == nil || d.IsNull() || d.n == 0 {
		return d
	}
	return Bytes(append([]byte(nil), d.Bytes()...))
}

// Arena clones datums into shared chunks: few allocations, and what was cloned
// lives as long as any datum of its chunk. The zero Arena is ready. It is not
// for concurrent use.
type Arena struct {
	chunk []byte
	size  int
}

const (
	arenaFirst = 512
	arenaMax   = 64 << 10
)

// Clone returns d with its bytes copied into the arena. Fixed-size values of
// types that live behind a pointer are cloned like any other.
func (a *Arena) Clone(d Datum) Datum {
	if d.p == nil || d.IsNull() || d.n == 0 {
		return d
	}
	return Bytes(a.Copy(d.Bytes()))
}

// CloneRow clones a row into dst, which has its length.
func (a *Arena) CloneRow(dst, row []Datum) {
	for i, d := range row {
		dst[i] = a.Clone(d)
	}
}

// Copy copies bytes into the arena.
func (a *Arena) Copy(b []byte) []byte {
	if len(b) > cap(a.chunk)-len(a.chunk) {
		if len(b) > arenaMax/4 {
			return append([]byte(nil), b...)
		}
		a.size = min(max(2*a.size, arenaFirst, len(b)), arenaMax)
		a.chunk = make([]byte, 0, a.size)
	}
	start := len(a.chunk)
	a.chunk = append(a.chunk, b...)
	return a.chunk[start:len(a.chunk):len(a.chunk)]
}
