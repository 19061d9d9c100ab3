package sim

// network loses, repeats, delays and holds back messages.
type network struct {
	w       *world
	side    []int          // of the partition that a node is on
	clogged map[[2]int]int // links, until when they deliver nothing
}

func (t *network) init(w *world) {
	t.w = w
	t.clogged = make(map[[2]int]int)
}

func (t *network) heal() {
	t.side = nil
	clear(t.clogged)
}

// part splits the nodes into two or three sides for a while.
func (t *network) part() {
	sides := 2 + t.w.rand.IntN(2)
	side := make([]int, len(t.w.nodes))
	for i := range side {
		side[i] = t.w.rand.IntN(sides)
	}
	t.side = side
	t.w.after(50+t.w.rand.IntN(800), func() {
		if len(t.side) == len(side) && &t.side[0] == &side[0] {
			t.side = nil
		}
	})
}

// clog holds back what travels on a link, and delivers it all at once later.
func (t *network) clog() {
	link := [2]int{t.w.rand.IntN(len(t.w.nodes)), t.w.rand.IntN(len(t.w.nodes))}
	t.clogged[link] = t.w.now + 50 + t.w.rand.IntN(500)
}

func (t *network) send(from, to *node, raw []byte) {
	w := t.w
	if !w.healed {
		if t.side != nil && t.side[from.number] != t.side[to.number] {
			return
		}
		if w.rand.IntN(100) < w.sc.Loss {
			return
		}
	}
	copies := 1
	if w.rand.IntN(100) < w.sc.Repeats {
		copies = 2
	}
	for range copies {
		delay := 1 + w.rand.IntN(w.sc.MaxDelay)
		if !w.healed {
			if w.rand.IntN(50) == 0 {
				delay *= 10 // overtaken by many others
			}
			delay = max(delay, t.clogged[[2]int{from.number, to.number}]-w.now)
		}
		w.after(delay, func() { to.receive(from, raw) })
	}
}
