package datum

import (
	"math/big"
	"math/bits"
)

// NumericSum adds up numerics for sum and avg. The zero value is empty. It
// works in 128 bits at the largest display scale seen and allocates only when
// the sum outgrows them. The result does not depend on the order of additions.
type NumericSum struct {
	n      int64
	hi     int64 // the sum is (hi:lo) / 10^scale in two's complement
	lo     uint64
	scale  int
	big    *decimal // what did not fit, added to hi:lo at the end
	nans   int64
	posInf int64
	negInf int64
}

// Count is how many values were added.
func (s *NumericSum) Count() int64 { return s.n }

// Add adds a numeric that is not null.
func (s *NumericSum) Add(d Datum) {
	s.n++
	if d.p == nil {
		v, scale := d.smallParts()
		if s.addSmall(v, scale) {
			return
		}
	}
	s.addBig(d)
}

// AddInt adds an integer.
func (s *NumericSum) AddInt(v int64) {
	s.n++
	if !s.addSmall(v, 0) {
		s.addBig(NumericFromInt64(v))
	}
}

// addSmall adds v / 10^scale if 128 bits suffice.
func (s *NumericSum) addSmall(v int64, scale int) bool {
	if scale > s.scale && !s.raise(scale) {
		return false
	}
	hi, lo := uint64(0), abs64(v)
	if k := s.scale - scale; k > 0 {
		if k >= len(pow10u) {
			return false
		}
		hi, lo = bits.Mul64(lo, pow10u[k])
		if hi>>62 != 0 {
			return false
		}
	}
	if v < 0 {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	nl, carry := bits.Add64(s.lo, lo, 0)
	nh, _ := bits.Add64(uint64(s.hi), hi, carry)
	if (s.hi < 0) == (int64(hi) < 0) && (int64(nh) < 0) != (s.hi < 0) {
		return false
	}
	s.hi, s.lo = int64(nh), nl
	return true
}

// raise moves the sum to a larger scale if it still fits.
func (s *NumericSum) raise(scale int) bool {
	k := scale - s.scale
	if s.hi == 0 && s.lo == 0 {
		s.scale = scale
		return true
	}
	if k >= len(pow10u) {
		return false
	}
	neg := s.hi < 0
	hi, lo := uint64(s.hi), s.lo
	if neg {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	over, h := bits.Mul64(hi, pow10u[k])
	hi, lo = bits.Mul64(lo, pow10u[k])
	var carry uint64
	hi, carry = bits.Add64(hi, h, 0)
	if over|carry != 0 || hi>>62 != 0 {
		return false
	}
	if neg {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	s.hi, s.lo, s.scale = int64(hi), lo, scale
	return true
}

func (s *NumericSum) addBig(d Datum) {
	var x decimal
	x.load(d)
	switch x.form {
	case bigNaN:
		s.nans++
	case bigPosInf:
		s.posInf++
	case bigNegInf:
		s.negInf++
	default:
		if s.big == nil {
			s.big = &decimal{form: bigPositive}
		}
		s.big.plus(&x)
	}
}

// plus adds y to x; both are finite. y may be rescaled.
func (x *decimal) plus(y *decimal) {
	scale := max(x.scale, y.scale)
	x.rescale(scale)
	y.rescale(scale)
	x.coef.Add(&x.coef, &y.coef)
}

// Sum is the sum of what was added, 0 if nothing was.
func (s *NumericSum) Sum() (Datum, error) {
	switch {
	case s.nans > 0 || s.posInf > 0 && s.negInf > 0:
		return NumericNaN, nil
	case s.posInf > 0:
		return NumericPosInf, nil
	case s.negInf > 0:
		return NumericNegInf, nil
	}
	neg := s.hi < 0
	hi, lo := uint64(s.hi), s.lo
	if neg {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	if s.big == nil {
		return from128(neg, hi, lo, s.scale), nil
	}
	x := decimal{form: bigPositive, scale: s.scale}
	x.coef.SetUint64(hi)
	x.coef.Lsh(&x.coef, 64)
	x.coef.Or(&x.coef, new(big.Int).SetUint64(lo))
	if neg {
		x.coef.Neg(&x.coef)
	}
	total := decimal{form: bigPositive, scale: s.big.scale}
	total.coef.Set(&s.big.coef)
	total.plus(&x)
	return total.datum()
}

// Avg is Sum divided by Count; null if nothing was added.
func (s *NumericSum) Avg() (Datum, error) {
	if s.n == 0 {
		return Null, nil
	}
	sum, err := s.Sum()
	if err != nil {
		return Null, err
	}
	return NumericDiv(sum, NumericFromInt64(s.n))
}

// Merge adds what another sum holds, which stays as it is. The result is that
// of adding all values to one sum.
func (s *NumericSum) Merge(o *NumericSum) {
	s.n += o.n
	s.nans += o.nans
	s.posInf += o.posInf
	s.negInf += o.negInf
	// Take both to one scale in a big sum, unless there is nothing in one.
	switch {
	case o.hi == 0 && o.lo == 0:
		if o.scale > s.scale && !s.raise(o.scale) {
			s.addDecimal(&decimal{form: bigPositive, scale: o.scale})
		}
	case s.hi == 0 && s.lo == 0 && o.scale >= s.scale:
		s.hi, s.lo, s.scale = o.hi, o.lo, o.scale
	default:
		x := o.decimal()
		s.addDecimal(&x)
	}
	if o.big != nil {
		x := decimal{form: bigPositive, scale: o.big.scale}
		x.coef.Set(&o.big.coef)
		s.addDecimal(&x)
	}
}

// decimal is hi:lo as a decimal.
func (s *NumericSum) decimal() decimal {
	neg := s.hi < 0
	hi, lo := uint64(s.hi), s.lo
	if neg {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	x := decimal{form: bigPositive, scale: s.scale}
	x.coef.SetUint64(hi)
	x.coef.Lsh(&x.coef, 64)
	x.coef.Or(&x.coef, new(big.Int).SetUint64(lo))
	if neg {
		x.coef.Neg(&x.coef)
	}
	return x
}

// addDecimal adds a finite number, which may be rescaled.
func (s *NumericSum) addDecimal(x *decimal) {
	if s.big == nil {
		s.big = &decimal{form: bigPositive}
	}
	s.big.plus(x)
}
