package sim

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math/rand/v2"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// Units of time.
const (
	unitsPerTick  = 10
	microsPerUnit = 1000
	clockOrigin   = 1_700_000_000_000_000
	maxSkew       = 2_000_000 // microseconds; clocks differ by a quarter of that
)

// Result is what a run came to.
type Result struct {
	Seed      uint64
	Scenario  Scenario
	Trace     [32]byte // hash over everything that happened
	Height    uint64   // last block of the chain
	Ordered   int      // transactions ordered once
	Repeats   int      // repeats that the orderers named
	Messages  int
	View      uint64 // highest view of an honest orderer
	Restarts  int
	HealTicks int // from the end of the faults until everything was ordered
	Err       error
}

// world is one run.
type world struct {
	spec Spec
	sc   Scenario
	seed uint64
	rand *rand.Rand

	now    int
	events events
	serial int
	trace  hash.Hash
	err    error

	scheme  scheme
	network block.Hash
	genesis *block.Block
	epochs  []ordering.Membership // as agreed on so far
	target  identity.OrdererSet   // of the configuration transaction
	nodes   []*node
	net     network
	check   checks
	clients clients
	healed  bool
	result  Result
}

type event struct {
	at, serial int
	run        func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].serial < e[j].serial
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	old[len(old)-1] = event{}
	*e = old[:len(old)-1]
	return x
}

// Run draws a scenario from the seed and runs it.
func Run(spec Spec, seed uint64) Result {
	r := rand.New(rand.NewPCG(seed, 1))
	sc := scenario(r)
	if spec.Edit != nil {
		spec.Edit(&sc)
	}
	return RunScenario(spec, sc, seed)
}

// RunScenario runs a scenario with the chances of a seed.
func RunScenario(spec Spec, sc Scenario, seed uint64) Result {
	w := newWorld(spec, sc, seed)
	w.start()
	w.runUntil(sc.Chaos)
	w.heal()
	limit := w.healLimit()
	for w.err == nil && !w.done() {
		if w.now-sc.Chaos > limit*unitsPerTick {
			w.fail("not everything is ordered %d ticks after the faults ended: %s", limit, w.describe())
			break
		}
		w.runUntil(w.now + unitsPerTick)
	}
	w.result.HealTicks = (w.now - sc.Chaos) / unitsPerTick
	w.result.Err = w.err
	copy(w.result.Trace[:], w.trace.Sum(nil))
	return w.result
}

// healLimit is how many ticks the cluster gets to order what waits. A view change
// may be under way whose timeout has grown with the time that the faults took.
func (w *world) healLimit() int {
	return 60*int(w.sc.Requests) + 4*w.sc.Chaos/unitsPerTick + 20*w.sc.Nodes + 400
}

func newWorld(spec Spec, sc Scenario, seed uint64) *world {
	w := &world{
		spec: spec, sc: sc, seed: seed,
		rand:   rand.New(rand.NewPCG(seed, 2)),
		trace:  sha256.New(),
		scheme: scheme{secrets: make(map[identity.PublicKey][32]byte)},
	}
	w.result.Seed, w.result.Scenario = seed, sc
	set := identity.OrdererSet{Quorum: ordering.Quorum(sc.Nodes)}
	for i := range sc.Nodes {
		set.Keys = append(set.Keys, w.scheme.member(i))
	}
	genesis := &block.Genesis{
		Network: "sim", Timestamp: clockOrigin - 1_000_000_000,
		Orgs:     []block.Org{{Name: "org", Users: []block.User{{Name: "admin", Role: identity.Admin}}}},
		Orderers: set, Params: block.DefaultParams(),
	}
	var err error
	if w.genesis, err = genesis.Block(); err != nil {
		w.fail("genesis: %v", err)
		return w
	}
	w.network = genesis.NetworkID()
	w.epochs = []ordering.Membership{{First: 1, ConfigID: w.network, Set: set}}
	w.check.init(w)
	w.clients.init(w)
	w.net.init(w)
	for i := range sc.Nodes {
		w.addNode(set.Keys[i], i < sc.Traitors)
	}
	w.drawTarget()
	return w
}

// drawTarget chooses the members after the change of membership: one joins, or
// one honest one leaves if enough stay.
func (w *world) drawTarget() {
	if !w.sc.Joins {
		return
	}
	set := w.epochs[0].Set
	keys := append([]identity.PublicKey(nil), set.Keys...)
	if w.sc.Nodes > 4 && w.rand.IntN(2) == 0 {
		keys = keys[:len(keys)-1]
	} else {
		key := w.scheme.member(w.sc.Nodes)
		keys = append(keys, key)
		w.addNode(key, false)
	}
	w.target = identity.OrdererSet{Keys: keys, Quorum: ordering.Quorum(len(keys))}
	if w.sc.Traitors > ordering.Faults(len(keys)) {
		w.sc.Joins = false // the traitors would be too many
	}
}

// after schedules.
func (w *world) after(units int, run func()) {
	w.serial++
	heap.Push(&w.events, event{w.now + max(units, 0), w.serial, run})
}

func (w *world) runUntil(at int) {
	for w.err == nil && len(w.events) > 0 && w.events[0].at <= at {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.run()
	}
	w.now = max(w.now, at)
}

func (w *world) start() {
	for _, n := range w.nodes {
		if w.epochs[0].Set.Index(n.key) >= 0 {
			n.boot()
		}
		n.tickSoon()
	}
	w.clients.start()
	w.plague()
}

// plague schedules crashes, partitions and clogs.
func (w *world) plague() {
	for range w.sc.Crashes {
		w.after(w.rand.IntN(w.sc.Chaos), func() { w.nodes[w.rand.IntN(len(w.nodes))].crash() })
	}
	for range w.sc.Parts {
		w.after(w.rand.IntN(w.sc.Chaos), w.net.part)
	}
	for range w.sc.Clogs {
		w.after(w.rand.IntN(w.sc.Chaos), w.net.clog)
	}
}

// heal ends all faults but the traitors.
func (w *world) heal() {
	w.healed = true
	w.net.heal()
	for _, n := range w.nodes {
		if !n.alive {
			n.boot()
		}
	}
	w.clients.heal()
}

// done reports whether every honest member has ordered all that clients wait for.
func (w *world) done() bool {
	need, ok := w.clients.satisfied()
	if !ok {
		return false
	}
	for _, n := range w.members() {
		if n.traitor == nil && (!n.alive || n.tip().Number < need) {
			return false
		}
	}
	return true
}

// members returns the nodes of the latest epoch that some member has reached.
func (w *world) members() []*node {
	var list []*node
	at := w.epochs[0]
	if len(w.epochs) > 1 && w.check.height() >= w.epochs[1].First-1 {
		at = w.epochs[1]
	}
	for _, n := range w.nodes {
		if at.Set.Index(n.key) >= 0 {
			list = append(list, n)
		}
	}
	return list
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("seed %d, unit %d: "+format, append([]any{w.seed, w.now}, args...)...)
	}
}

// note adds to the trace.
func (w *world) note(what byte, node int, raw []byte) {
	var head [1 + 8 + 2]byte
	head[0] = what
	binary.BigEndian.PutUint64(head[1:], uint64(w.now))
	binary.BigEndian.PutUint16(head[9:], uint16(node))
	w.trace.Write(head[:])
	w.trace.Write(raw)
}

func (w *world) describe() string {
	text := fmt.Sprintf("%+v; chain %d;", w.sc, w.check.height())
	for _, n := range w.nodes {
		if n.alive {
			text += fmt.Sprintf(" node %d (traitor %v) %+v;", n.number, n.traitor != nil, n.machine.Status())
		}
	}
	return text + w.clients.describe()
}
