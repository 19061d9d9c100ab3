package exec

// slotSet is a set of slot numbers.
type slotSet []uint64

func (s *slotSet) add(slots ...int) {
	for _, i := range slots {
		if i < 0 {
			continue
		}
		for i/64 >= len(*s) {
			*s = append(*s, 0)
		}
		(*s)[i/64] |= 1 << (i % 64)
	}
}

func (s slotSet) has(i int) bool { return i/64 < len(s) && s[i/64]>>(i%64)&1 != 0 }

func (s *slotSet) union(t slotSet) {
	for i, w := range t {
		if i == len(*s) {
			*s = append(*s, 0)
		}
		(*s)[i] |= w
	}
}

func (s slotSet) meets(t slotSet) bool {
	for i := range min(len(s), len(t)) {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// watch runs compile and returns which slots the part compiled reads in
// expressions, and which its nodes fill.
func (c *compiler) watch(compile func() error) (reads, fills slotSet, err error) {
	outerReads, outerFills := c.reads, c.fills
	c.reads, c.fills = nil, nil
	err = compile()
	reads, fills = c.reads, c.fills
	outerReads.union(reads)
	outerFills.union(fills)
	c.reads, c.fills = outerReads, outerFills
	return reads, fills, err
}
