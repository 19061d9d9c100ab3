package builtin

// How a match is taken apart (cdissect and its like in regexec.c). Every part
// tries its ways in the order of its preference and keeps the first that works
// over the stretch that it was given: no part is asked twice for the same stretch.

// dissect takes a stretch apart and sets the groups in it; false if it does not
// match.
func (m *reMatcher) dissect(t *reTree, lo, hi int) bool {
	if !m.work() {
		return false
	}
	ok := false
	switch t.op {
	case treeLeaf:
		ok = m.spans(t, lo, hi)
	case treeRef:
		ok = m.refers(t, lo, hi)
	case treeGroup:
		ok = m.dissect(t.kids[0], lo, hi)
	case treeCat:
		ok = m.dissectCat(t, lo, hi)
	case treeAlt:
		for _, k := range t.kids {
			if m.spans(k, lo, hi) && m.dissect(k, lo, hi) {
				ok = true
				break
			}
		}
	case treeRepeat:
		if t.kids[0].flags&reShorter != 0 {
			ok = m.repeatShort(t, lo, hi)
		} else {
			ok = m.repeatLong(t, lo, hi)
		}
	}
	if ok && t.group > 0 {
		m.groups[2*t.group], m.groups[2*t.group+1] = lo, hi
	}
	return ok && m.err == nil
}

// spans tells that a part matches exactly a stretch, back references unverified.
func (m *reMatcher) spans(t *reTree, lo, hi int) bool {
	found := false
	m.run(t.prog, lo, hi, func(i int) bool { found = i == hi; return !found })
	return found
}

// forget unsets the groups of a part.
func (m *reMatcher) forget(t *reTree) {
	if t.flags&reCaptures == 0 {
		return
	}
	if t.group > 0 {
		m.groups[2*t.group], m.groups[2*t.group+1] = -1, -1
	}
	for _, k := range t.kids {
		m.forget(k)
	}
}

// dissectCat finds the middle (ccondissect and crevcondissect).
func (m *reMatcher) dissectCat(t *reTree, lo, hi int) bool {
	left, right := t.kids[0], t.kids[1]
	ends := m.ends(left.prog, lo, hi)
	for i := range ends {
		mid := ends[i]
		if left.flags&reShorter == 0 {
			mid = ends[len(ends)-1-i]
		}
		if m.spans(right, mid, hi) && m.dissect(left, lo, mid) && m.dissect(right, mid, hi) {
			return true
		}
		if m.err != nil {
			return false
		}
		m.forget(left)
		m.forget(right)
	}
	return false
}

// refers verifies a back reference (cbrdissect).
func (m *reMatcher) refers(t *reTree, lo, hi int) bool {
	from, to := m.groups[2*t.ref], m.groups[2*t.ref+1]
	if from < 0 {
		return false
	}
	n, length := to-from, hi-lo
	switch {
	case n == 0:
		return length == 0
	case length == 0:
		return t.min == 0
	case length%n != 0 || length/n < t.min || t.max >= 0 && length/n > t.max:
		return false
	}
	for i := range length {
		if !m.work() || !m.sameCase(m.text[lo+i], m.text[from+i%n]) {
			return false
		}
	}
	return true
}

// rounds are the bounds on how many rounds of a repetition fill a stretch.
func (t *reTree) rounds(length int) (least, most int) {
	least = max(t.min, 1)
	most = length
	if t.max >= 0 {
		most = min(most, t.max)
	}
	return least, max(most, least)
}

// verify takes the rounds of a repetition apart, from the first not yet verified
// on; it returns how many are.
func (m *reMatcher) verify(t *reTree, ends []int, k, verified int) int {
	for verified < k {
		m.forget(t.kids[0])
		if !m.dissect(t.kids[0], ends[verified], ends[verified+1]) {
			break
		}
		verified++
	}
	return verified
}

// repeatLong fills a stretch with rounds, each as long as possible
// (citerdissect).
func (m *reMatcher) repeatLong(t *reTree, lo, hi int) bool {
	least, most := t.rounds(hi - lo)
	ends := make([]int, most+1)
	ends[0], ends[1] = lo, hi
	verified := 0
	for k := 1; k > 0 && m.work(); {
		end := -1
		m.run(t.kids[0].prog, ends[k-1], ends[k], func(i int) bool { end = i; return true })
		verified = min(verified, k-1)
		needed := func(k, end int) bool { return k < least && least-k >= hi-end }
		switch {
		case end < 0:
			k--
		case end != hi:
			ends[k] = end
			if k >= most {
				k--
			} else if end != ends[k-1] || needed(k, end) {
				k++
				ends[k] = hi
				continue
			}
		default:
			ends[k] = end
			if k >= least {
				if verified = m.verify(t, ends, k, verified); verified == k {
					return true
				}
				k = verified + 1
			}
		}
		for ; k > 0; k-- {
			if prev := ends[k-1]; ends[k] > prev {
				ends[k]--
				if ends[k] > prev || needed(k, prev) {
					break
				}
			}
		}
	}
	// No round at all is the last resort, where repeatShort begins with it.
	return t.min == 0 && lo == hi
}

// repeatShort fills a stretch with rounds, each as short as possible
// (creviterdissect).
func (m *reMatcher) repeatShort(t *reTree, lo, hi int) bool {
	if t.min == 0 && lo == hi {
		return true
	}
	least, most := t.rounds(hi - lo)
	ends := make([]int, most+1)
	ends[0] = lo
	limit, verified := lo, 0
	for k := 1; k > 0 && m.work(); {
		if limit == ends[k-1] && limit != hi && (k >= least || least-k < hi-limit) {
			limit++
		}
		if k >= most {
			limit = hi
		}
		end := -1
		m.run(t.kids[0].prog, ends[k-1], hi, func(i int) bool {
			if i >= limit {
				end = i
			}
			return end < 0
		})
		verified = min(verified, k-1)
		switch {
		case end < 0:
			k--
		case end != hi:
			ends[k] = end
			if k < most {
				k++
				limit = end
				continue
			}
			k--
		default:
			ends[k] = end
			if k >= least {
				if verified = m.verify(t, ends, k, verified); verified == k {
					return true
				}
				k = verified + 1
			}
		}
		for ; k > 0; k-- {
			if ends[k] < hi {
				limit = ends[k] + 1
				break
			}
		}
	}
	return false
}
