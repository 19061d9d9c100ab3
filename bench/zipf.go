package bench

import (
	"math"
	"math/rand/v2"
)

// zipf draws ranks 0..n-1, rank i with a probability proportional to
// 1/(i+1)^theta, for 0 < theta < 1, which math/rand's generator does not offer:
// the method of Gray et al., "Quickly Generating Billion-Record Synthetic
// Databases" (SIGMOD 1994), which YCSB uses.
type zipf struct {
	rng              *rand.Rand
	n                float64
	theta, alpha     float64
	zetan, eta, half float64
}

func newZipf(rng *rand.Rand, n int, theta float64) *zipf {
	zetan := 0.0
	for i := 1; i <= n; i++ {
		zetan += 1 / math.Pow(float64(i), theta)
	}
	zeta2 := 1 + 1/math.Pow(2, theta)
	return &zipf{
		rng: rng, n: float64(n), theta: theta, alpha: 1 / (1 - theta), zetan: zetan,
		eta: (1 - math.Pow(2/float64(n), 1-theta)) / (1 - zeta2/zetan), half: math.Pow(0.5, theta),
	}
}

func (z *zipf) next() int {
	u := z.rng.Float64()
	switch uz := u * z.zetan; {
	case uz < 1:
		return 0
	case uz < 1+z.half:
		return 1
	}
	return min(int(z.n)-1, int(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)))
}
