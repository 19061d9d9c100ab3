package identity

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/oasisprotocol/curve25519-voi/curve"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519/extra/cache"
)

// acceptance is the one rule, for single and for batch verification alike. The
// default of the library (which refuses small-order keys) and that of Go's
// crypto/ed25519 (cofactorless) accept other sets.
var acceptance = &ed25519.Options{Verify: ed25519.VerifyOptionsZIP_215}

// Verify reports whether sig is a signature of msg by pub under the acceptance
// rule of this package. For more than a handful of signatures or returning
// keys, [BatchVerifier] gives the same answers faster.
func Verify(pub PublicKey, msg []byte, sig Signature) bool {
	return ed25519.VerifyWithOptions(pub[:], msg, sig[:], acceptance)
}

// Item is one signature to verify.
type Item struct {
	Key       PublicKey
	Message   []byte // read only; normally a Digest
	Signature Signature
}

const (
	// maxChunk is the number of signatures in one batch equation. From 95 on the
	// library no longer uses the tables of expanded keys; its general
	// multiplication is 5 % faster at 128 and more, but one bad signature
	// makes its whole chunk be checked one by one.
	maxChunk = 90
	// minChunk keeps the cost of starting a goroutine and the fixed cost of an
	// equation small against the work.
	minChunk = 16
	// DefaultCachedKeys is the default bound of the key cache, about 1.5 KiB
	// a key.
	DefaultCachedKeys = 4096
)

// BatchVerifier verifies many signatures at once. It keeps a bounded cache of
// expanded public keys and splits the work over goroutines; neither changes a
// verdict. It is safe for concurrent use.
type BatchVerifier struct {
	workers int
	keys    cache.Cache // of *ed25519.ExpandedPublicKey; locks itself
	batches sync.Pool   // of *ed25519.BatchVerifier
}

// NewBatchVerifier makes a verifier that uses at most workers goroutines a
// call (0 or less: GOMAXPROCS) and caches at most cachedKeys expanded keys (0
// or less: [DefaultCachedKeys]).
func NewBatchVerifier(workers, cachedKeys int) *BatchVerifier {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if cachedKeys <= 0 {
		cachedKeys = DefaultCachedKeys
	}
	return &BatchVerifier{
		workers: workers,
		keys:    cache.NewLRUCache(cachedKeys),
		batches: sync.Pool{New: func() any { return ed25519.NewBatchVerifierWithCapacity(maxChunk) }},
	}
}

// Verify is [Verify] with the key cache.
func (v *BatchVerifier) Verify(pub PublicKey, msg []byte, sig Signature) bool {
	key := v.expand(pub)
	return key != nil && ed25519.VerifyExpandedWithOptions(key, msg, sig[:], acceptance)
}

// VerifyBatch sets ok[i] to the verdict on items[i] and reports whether all
// are valid. ok has at least the length of items.
func (v *BatchVerifier) VerifyBatch(items []Item, ok []bool) bool {
	ok = ok[:len(items)]
	chunk := min(max((len(items)+v.workers-1)/v.workers, minChunk), maxChunk)
	return v.verifyChunks(items, ok, chunk)
}

// verifyChunks cuts items into chunks, which the workers take one by one.
func (v *BatchVerifier) verifyChunks(items []Item, ok []bool, chunk int) bool {
	chunks := (len(items) + chunk - 1) / chunk
	var next atomic.Int64
	var bad atomic.Bool
	work := func() {
		for {
			start := int(next.Add(1)-1) * chunk
			if start >= len(items) {
				return
			}
			end := min(start+chunk, len(items))
			if !v.verifyChunk(items[start:end], ok[start:end]) {
				bad.Store(true)
			}
		}
	}
	var wg sync.WaitGroup
	for range min(v.workers, chunks) - 1 {
		wg.Go(work)
	}
	work() // the caller is a worker too
	wg.Wait()
	return !bad.Load()
}

// verifyChunk checks one batch equation; when it fails, every signature gets
// its own.
func (v *BatchVerifier) verifyChunk(items []Item, ok []bool) bool {
	if len(items) == 1 {
		ok[0] = v.Verify(items[0].Key, items[0].Message, items[0].Signature)
		return ok[0]
	}
	batch := v.batches.Get().(*ed25519.BatchVerifier).Reset()
	defer v.batches.Put(batch)
	all := true
	for i := range items {
		// A key that is no curve point verifies nothing; in the batch it would
		// only make the others lose their tables.
		key := v.expand(items[i].Key)
		if ok[i] = key != nil; ok[i] {
			batch.AddExpandedWithOptions(key, items[i].Message, items[i].Signature[:], acceptance)
		} else {
			all = false
		}
	}
	// The random coefficients of the equation come from crypto/rand: nobody
	// can choose signatures to fit them, and a wrong verdict has probability
	// 2^-128 whatever the batch.
	valid, verdicts := batch.Verify(nil)
	j := 0
	for i := range ok {
		if ok[i] {
			ok[i] = verdicts[j]
			j++
		}
	}
	return all && valid
}

// expand returns the tables for a key, or nil when it is no curve point.
func (v *BatchVerifier) expand(pub PublicKey) *ed25519.ExpandedPublicKey {
	compressed := curve.CompressedEdwardsY(pub)
	if key := v.keys.Get(&compressed); key != nil {
		return key
	}
	key, err := ed25519.NewExpandedPublicKey(pub[:])
	if err != nil {
		return nil
	}
	v.keys.Put(&compressed, key)
	return key
}
