package mvcc

// Metrics is a momentary view of a store's work, for monitoring.
type Metrics struct {
	// HeadHits and HeadMisses count point reads that the head cache answered
	// and did not; HeadEntries and HeadBytes are its present size.
	HeadHits, HeadMisses   uint64
	HeadEntries, HeadBytes int64

	// DiskBytes is what the store occupies, its log included.
	DiskBytes uint64
	// ReadAmplification is the number of sorted runs a read may have to merge.
	ReadAmplification int
	// CompactionDebtBytes estimates what compactions still have to rewrite.
	CompactionDebtBytes uint64
	// BlockCacheHits and BlockCacheMisses count accesses to sstable blocks.
	BlockCacheHits, BlockCacheMisses int64
}

// Metrics returns the store's metrics. It must not be called after Close.
func (s *Store) Metrics() Metrics {
	p := s.db.Metrics()
	m := Metrics{
		HeadHits:            s.cache.hits.Load(),
		HeadMisses:          s.cache.misses.Load(),
		DiskBytes:           p.DiskSpaceUsage(),
		ReadAmplification:   p.ReadAmp(),
		CompactionDebtBytes: p.Compact.EstimatedDebt,
		BlockCacheHits:      p.BlockCache.Hits,
		BlockCacheMisses:    p.BlockCache.Misses,
	}
	if s.head != nil {
		for i := range s.head.shards {
			sh := &s.head.shards[i]
			sh.mu.Lock()
			m.HeadEntries += int64(len(sh.ring))
			m.HeadBytes += sh.bytes
			sh.mu.Unlock()
		}
	}
	return m
}
