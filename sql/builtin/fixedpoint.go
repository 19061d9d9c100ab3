package builtin

import (
	"math"
	"math/big"
	"sync"
)

// The transcendental functions over double precision are computed in fixed
// point with fracBits bits behind the point and rounded once at the end. Go's
// math package will not do for contracts: it has assembly for some platforms
// and lets the compiler fuse multiplications with additions on others, and the
// last digits differ. Integer arithmetic is the same everywhere, and with 256
// bits the result is the correctly rounded one but for cases of astronomically
// bad luck - which are the same everywhere too.
const fracBits = 256

var fixOne = new(big.Int).Lsh(big.NewInt(1), fracBits)

// toFix converts a finite float; bits below the point's reach are cut.
func toFix(x float64) *big.Int {
	var f big.Float
	f.SetFloat64(x)
	f.SetMantExp(&f, fracBits)
	v, _ := f.Int(nil)
	return v
}

// fromFix is v * 2^exp as the nearest float.
func fromFix(v *big.Int, exp int) float64 {
	if v.Sign() == 0 {
		return 0
	}
	var f big.Float
	f.SetInt(v)
	f.SetMantExp(&f, exp-fracBits)
	r, _ := f.Float64()
	return r
}

func fixMul(a, b *big.Int) *big.Int {
	r := new(big.Int).Mul(a, b)
	return r.Rsh(r, fracBits)
}

func fixQuo(a, b *big.Int) *big.Int {
	r := new(big.Int).Lsh(a, fracBits)
	return r.Quo(r, b)
}

func fixSqrt(a *big.Int) *big.Int {
	r := new(big.Int).Lsh(a, fracBits)
	return r.Sqrt(r)
}

func fixAdd(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
func fixSub(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }

// inverseSeries is sum of sign^k / ((2k+1) n^(2k+1)) at a precision in bits:
// atan(1/n) for sign -1, atanh(1/n) for sign 1.
func inverseSeries(n, sign int64, bits uint) *big.Int {
	power := new(big.Int).Lsh(big.NewInt(1), bits)
	power.Quo(power, big.NewInt(n))
	square := big.NewInt(n * n)
	sum, term := new(big.Int), new(big.Int)
	for k, s := int64(1), int64(1); power.Sign() != 0; k, s = k+2, s*sign {
		term.Quo(power, big.NewInt(k))
		if s > 0 {
			sum.Add(sum, term)
		} else {
			sum.Sub(sum, term)
		}
		power.Quo(power, square)
	}
	return sum
}

// piBits is the precision to which pi is kept: enough to reduce the largest
// double.
const piBits = 1024 + 64 + fracBits

// fixPiWide is pi with piBits bits behind the point (Machin's formula).
var fixPiWide = sync.OnceValue(func() *big.Int {
	const guard = 32
	a := inverseSeries(5, -1, piBits+guard)
	b := inverseSeries(239, -1, piBits+guard)
	a.Lsh(a, 4)
	b.Lsh(b, 2)
	a.Sub(a, b)
	return a.Rsh(a, guard)
})

var fixPi = sync.OnceValue(func() *big.Int { return new(big.Int).Rsh(fixPiWide(), piBits-fracBits) })

// fixLn2 is ln 2 = 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749).
var fixLn2 = sync.OnceValue(func() *big.Int {
	const guard = 32
	sum := new(big.Int)
	for _, t := range []struct{ factor, n int64 }{{18, 26}, {-2, 4801}, {8, 8749}} {
		s := inverseSeries(t.n, 1, fracBits+guard)
		sum.Add(sum, s.Mul(s, big.NewInt(t.factor)))
	}
	return sum.Rsh(sum, guard)
})

var fixLn10 = sync.OnceValue(func() *big.Int { return fixLog(10) })

// fixExp is e^x as m * 2^exp; x must be of a size that fits an int.
func fixExp(x *big.Int) (m *big.Int, exp int) {
	k := new(big.Int).Lsh(x, 1)
	k.Quo(k, fixLn2())
	k.Add(k, big.NewInt(int64(k.Sign())))
	k.Quo(k, big.NewInt(2)) // nearest integer
	r := fixSub(x, new(big.Int).Mul(k, fixLn2()))
	const halvings = 16
	r.Rsh(r, halvings)
	sum, term := fixAdd(fixOne, r), new(big.Int).Set(r)
	for i := int64(2); ; i++ {
		term = fixMul(term, r)
		term.Quo(term, big.NewInt(i))
		if term.BitLen() <= 1 { // 0, or the -1 that shifting a negative leaves
			break
		}
		sum.Add(sum, term)
	}
	for range halvings {
		sum = fixMul(sum, sum)
	}
	return sum, int(k.Int64())
}

// fixLog is ln x of a positive finite float.
func fixLog(x float64) *big.Int {
	m, e := math.Frexp(x)
	if m < 0.75 {
		m, e = m*2, e-1
	}
	return fixAdd(fixLogNear(toFix(m)), new(big.Int).Mul(fixLn2(), big.NewInt(int64(e))))
}

// fixLogNear is ln v for v near 1, as 2 atanh((v-1)/(v+1)).
func fixLogNear(v *big.Int) *big.Int {
	z := fixQuo(fixSub(v, fixOne), fixAdd(v, fixOne))
	sum := oddSeries(z, 1)
	return sum.Lsh(sum, 1)
}

// fixLogBig is ln of any positive fixed-point number.
func fixLogBig(v *big.Int) *big.Int {
	e := v.BitLen() - fracBits
	m := new(big.Int)
	if e > 0 {
		m.Rsh(v, uint(e))
	} else {
		m.Lsh(v, uint(-e))
	}
	return fixAdd(fixLogNear(m), new(big.Int).Mul(fixLn2(), big.NewInt(int64(e))))
}

// oddSeries is sum of sign^k z^(2k+1) / (2k+1): atan(z) or atanh(z), |z| < 1.
func oddSeries(z *big.Int, sign int) *big.Int {
	square := fixMul(z, z)
	if sign < 0 {
		square.Neg(square)
	}
	sum, power, term := new(big.Int).Set(z), z, new(big.Int)
	for k := int64(3); ; k += 2 {
		power = fixMul(power, square)
		if term.Quo(power, big.NewInt(k)); term.Sign() == 0 {
			return sum
		}
		sum.Add(sum, term)
	}
}

// fixSinCos is the sine and cosine of a finite float.
func fixSinCos(x float64) (sin, cos *big.Int) {
	var f big.Float
	f.SetFloat64(x)
	f.SetMantExp(&f, piBits)
	v, _ := f.Int(nil)
	return sinCosOf(v, new(big.Int).Rsh(fixPiWide(), 1), piBits)
}

// sinCosOf reduces v by multiples of a quarter turn; both have the same number
// of bits behind the point.
func sinCosOf(v, quarter *big.Int, bits uint) (sin, cos *big.Int) {
	half := new(big.Int).Rsh(quarter, 1)
	n := new(big.Int).Add(v, half)
	n.Div(n, quarter) // floor: the nearest multiple
	r := new(big.Int).Mul(n, quarter)
	r.Sub(v, r)
	r.Rsh(r, bits-fracBits)
	s, c := sinCosSeries(r)
	switch new(big.Int).And(n, big.NewInt(3)).Int64() {
	case 0:
		return s, c
	case 1:
		return c, s.Neg(s)
	case 2:
		return s.Neg(s), c.Neg(c)
	}
	return c.Neg(c), s
}

func sinCosSeries(r *big.Int) (sin, cos *big.Int) {
	square := fixMul(r, r)
	square.Neg(square)
	sin, cos = new(big.Int).Set(r), new(big.Int).Set(fixOne)
	s, c := r, fixOne
	for k := int64(1); ; k += 2 {
		c = fixMul(c, square)
		c.Quo(c, big.NewInt(k*(k+1)))
		s = fixMul(s, square)
		s.Quo(s, big.NewInt((k+1)*(k+2)))
		if c.Sign() == 0 && s.Sign() == 0 {
			return sin, cos
		}
		cos.Add(cos, c)
		sin.Add(sin, s)
	}
}

// fixAtan is atan v of any fixed-point number.
func fixAtan(v *big.Int) *big.Int {
	if v.Sign() < 0 {
		r := fixAtan(new(big.Int).Neg(v))
		return r.Neg(r)
	}
	if v.Cmp(fixOne) > 0 {
		half := new(big.Int).Rsh(fixPi(), 1)
		return half.Sub(half, fixAtan(fixQuo(fixOne, v)))
	}
	const halvings = 4 // atan v = 2 atan(v / (1 + sqrt(1 + v^2)))
	for range halvings {
		v = fixQuo(v, fixAdd(fixOne, fixSqrt(fixAdd(fixOne, fixMul(v, v)))))
	}
	r := oddSeries(v, -1)
	return r.Lsh(r, halvings)
}
