package lthash

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"
)

// plain is the definition: integer by integer.
type plain [1024]uint16

func (p *plain) add(x *Expander, element []byte, sign uint16) {
	x.expand(element)
	for i := range p {
		p[i] += sign * binary.LittleEndian.Uint16(x.stream[2*i:])
	}
}

func (p *plain) bytes() (b []byte) {
	for _, v := range p {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

func TestAgainstPlain(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	var x Expander
	var s, other Sum
	var p plain
	for i := range 2000 {
		e := []byte(fmt.Sprint(r.IntN(100)))
		switch r.IntN(4) {
		case 0:
			x.Add(&s, e)
			p.add(&x, e, 1)
		case 1:
			x.Sub(&s, e)
			p.add(&x, e, ^uint16(0))
		case 2:
			other = Sum{}
			x.Add(&other, e)
			s.Add(&other)
			p.add(&x, e, 1)
		case 3:
			other = Sum{}
			x.Add(&other, e)
			s.Sub(&other)
			p.add(&x, e, ^uint16(0))
		}
		if string(s.Append(nil)) != string(p.bytes()) {
			t.Fatalf("seed %d: differs from the definition after step %d", seed, i)
		}
	}
}

func TestMultiset(t *testing.T) {
	var x Expander
	var a, b Sum
	for i := range 100 {
		x.Add(&a, []byte{byte(i)})
		x.Add(&b, []byte{byte(99 - i)})
	}
	if a != b {
		t.Error("the order of elements matters")
	}
	x.Add(&b, []byte{5})
	if a == b {
		t.Error("a second copy of an element makes no difference")
	}
	x.Sub(&b, []byte{5})
	for i := range 100 {
		x.Sub(&b, []byte{byte(i)})
	}
	if !b.IsZero() || a.IsZero() {
		t.Error("what was added was not taken away")
	}
	d, err := Decode(a.Append([]byte{})[:])
	if err != nil || *d != a {
		t.Errorf("decoding: %v", err)
	}
	if _, err := Decode(make([]byte, Size-1)); err == nil {
		t.Error("a short sum is accepted")
	}
}

// TestGolden fixes the expansion, which is consensus-critical.
func TestGolden(t *testing.T) {
	var x Expander
	var s Sum
	x.Add(&s, []byte("element"))
	h := s.Hash()
	if got, want := hex.EncodeToString(h[:]), goldenOne; got != want {
		t.Errorf("sum of one element hashes to %s, not %s", got, want)
	}
	x.Add(&s, nil)
	x.Sub(&s, []byte("other"))
	h = s.Hash()
	if got, want := hex.EncodeToString(h[:]), goldenThree; got != want {
		t.Errorf("sum of three elements hashes to %s, not %s", got, want)
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, n := range []int{64, 200, 1000} {
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			var x Expander
			var s Sum
			e := make([]byte, n)
			b.ReportAllocs()
			for b.Loop() {
				e[0]++
				x.Add(&s, e)
			}
		})
	}
}

func BenchmarkSum(b *testing.B) {
	var s, o Sum
	for b.Loop() {
		s.Add(&o)
	}
}

const (
	goldenOne   = "2b9f21091ad297b44596df3e25339327c262b385b07f0dc46f92b5682afb4adc"
	goldenThree = "0cf8083d314be2f9dca3ef3a451549e32b2d20b857f7c4d4c51b2c6725092743"
)
