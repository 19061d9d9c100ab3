package pbft

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// BenchmarkNormalCase orders transactions of 196 bytes with four replicas in one
// goroutine, in memory. The cases add up: the machines alone, with the messages
// encoded and decoded, and with votes signed and verified.
func BenchmarkNormalCase(b *testing.B) {
	for _, size := range []int{1, 100, 500, 2000} {
		for _, mode := range []string{"machine", "codec", "ed25519"} {
			b.Run(fmt.Sprintf("batch=%d/%s", size, mode), func(b *testing.B) { benchNormal(b, size, mode) })
		}
	}
}

func benchTxs(network block.Hash, n int, until uint64) []*block.Tx {
	txs := make([]*block.Tx, n)
	for i := range txs {
		tx := &block.Tx{
			Network: network, User: identity.UserID{Org: "org1", Name: "client1"}, ValidUntil: until,
			Call: block.Call{Schema: "blockchain", Name: "simple", ArgTypes: []string{"bytea"}, Args: []block.Arg{{Value: make([]byte, 33)}}},
		}
		binary.BigEndian.PutUint64(tx.Nonce[:], uint64(i)+1)
		var err error
		if txs[i], err = block.DecodeTx(tx.Encode()); err != nil {
			panic(err)
		}
	}
	return txs
}

// processTime is the processor time that this process has used.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchNormal(b *testing.B, size int, mode string) {
	const n = 4
	set := identity.OrdererSet{Quorum: 3}
	signers := make([]*identity.Signer, n)
	for i := range n {
		signers[i] = identity.NewSigner([32]byte{byte(i + 1)})
	}
	slices.SortFunc(signers, func(a, b *identity.Signer) int {
		ka, kb := a.Public(), b.Public()
		return bytes.Compare(ka[:], kb[:])
	})
	for _, s := range signers {
		set.Keys = append(set.Keys, s.Public())
	}
	genesis := &block.Block{Timestamp: 1}
	genesis.Seal()
	opts := ordering.MachineOptions{
		Network: block.Hash{1}, Members: ordering.Membership{First: 1, Set: set}, BatchTxs: size, BatchBytes: 16 << 20,
		MaxLife: 256, MaxWaiting: 1 << 20, MaxWaitingBytes: 1 << 30, Pipeline: 128,
	}
	verifier := &ordering.Verifier{Protocol: Protocol, Network: opts.Network, Members: opts.Members,
		Signatures: func(items []identity.Item, ok []bool) bool { return true }}
	sign := func([32]byte) identity.Signature { return identity.Signature{1} }
	if mode == "ed25519" {
		verifier.Signatures = identity.NewBatchVerifier(1, 0).VerifyBatch
	}
	machines := make([]*Machine, n)
	for i := range machines {
		o := opts
		o.Self, o.Sign = i, sign
		if mode == "ed25519" {
			o.Sign = func(d [32]byte) identity.Signature { return signers[i].Sign(d[:]) }
		}
		var err error
		if machines[i], err = New(o, ordering.Start{Tip: genesis}, nil); err != nil {
			b.Fatal(err)
		}
		machines[i].Tick(1_000_000)
	}
	messages := 0
	step := func(to, from int, m ordering.Message, raw []byte) {
		var v ordering.Verified
		var err error
		if mode == "machine" {
			v, err = verifier.VerifyMessage(from, m)
		} else {
			v, err = verifier.Verify(from, raw)
		}
		if err != nil {
			b.Fatal(err)
		}
		machines[to].Step(v)
		messages++
	}
	run := func() {
		for busy := true; busy; {
			busy = false
			for i, m := range machines {
				r := m.Ready()
				if r.Empty() {
					continue
				}
				busy = true
				for _, out := range r.Send {
					var raw []byte
					if mode != "machine" {
						raw = out.Message.AppendTo(nil)
					}
					for to := range machines {
						if to != i && (out.To == to || out.To == ordering.ToAll) {
							step(to, i, out.Message, raw)
						}
					}
				}
				if k := len(r.Decided); k > 0 {
					m.Advance(r.Decided[k-1].Block.Number)
				}
			}
		}
	}
	const round = 32 // batches of an iteration
	total := 0
	var cpu time.Duration // of the process, for machines that are shared
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		txs := benchTxs(opts.Network, size*round, uint64(total/size)+200)
		for i := range txs { // new ones in every iteration
			raw := append([]byte(nil), txs[i].Encode()...)
			binary.BigEndian.PutUint64(raw[len(raw)-64:], uint64(total+i))
			txs[i], _ = block.DecodeTx(raw)
		}
		b.StartTimer()
		before := processTime()
		for _, m := range machines {
			m.Tick(1_000_000 + int64(total))
		}
		for rest := txs; len(rest) > 0; {
			rest = rest[machines[0].Submit(rest):]
			run()
		}
		cpu += processTime() - before
		total += len(txs)
	}
	if h := machines[3].height; int(h) != total/size {
		b.Fatalf("%d blocks for %d transactions", h, total)
	}
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(total)/seconds, "tx/s")
	b.ReportMetric(float64(total)/cpu.Seconds(), "tx/cpu-s")
	b.ReportMetric(float64(messages)/seconds, "msgs/s")
	b.ReportMetric(float64(messages)/float64(b.N), "msgs/op")
}
