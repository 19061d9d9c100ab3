package bench

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/server"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Local submits signed transactions to a node in this process, without a
// connection. It carries out calls only.
type Local struct {
	Node *server.Node
	User string // who signs
}

// Prepare implements [Target]: it signs.
func (l *Local) Prepare(_ int, op *Op) (any, error) { return l.sign(op) }

func (l *Local) sign(op *Op) (*block.Tx, error) {
	if op.Query != "" {
		return nil, fmt.Errorf("bench: %s is a query, which needs a connection", op.Name)
	}
	types, args := make([]datum.Type, len(op.Types)), make([]datum.Datum, len(op.Types))
	for i, name := range op.Types {
		var err error
		if types[i], args[i], err = argument(name, op.Args[i]); err != nil {
			return nil, err
		}
	}
	call, err := contracts.MakeCall("blockchain", op.Name, types, args)
	if err != nil {
		return nil, err
	}
	return l.Node.Sign(l.User, call)
}

var argumentTypes = map[string]*datum.Desc{
	"integer": datum.Int4, "bigint": datum.Int8, "numeric": datum.Numeric, "text": datum.Text,
}

func argument(name string, v any) (datum.Type, datum.Datum, error) {
	d := argumentTypes[name]
	if d == nil {
		return datum.Type{}, datum.Datum{}, fmt.Errorf("bench: no arguments of type %s", name)
	}
	if n, ok := v.(int64); ok {
		return datum.T(d), datum.Int(n), nil
	}
	value, err := d.Parse(v.(string), -1, &datum.ContractFormat)
	return datum.T(d), value, err
}

// Do implements [Target].
func (l *Local) Do(ctx context.Context, _ int, op *Op, prepared any) (Outcome, error) {
	tx, _ := prepared.(*block.Tx)
	if tx == nil {
		var err error
		if tx, err = l.sign(op); err != nil {
			return Outcome{}, err
		}
	}
	receipt, err := l.Node.Submit(ctx, tx)
	if err != nil {
		e, ok := pgerr.From(err)
		if !ok || ctx.Err() != nil {
			return Outcome{}, err
		}
		return Outcome{Failed: string(e.Code)}, nil
	}
	switch receipt.Status {
	case chain.Committed:
		return Outcome{}, nil
	case chain.Aborted:
		return Outcome{Abort: string(receipt.Err.Code)}, nil
	default:
		return Outcome{Failed: string(receipt.Err.Code)}, nil
	}
}

// Meter reads what a node and this process spent between two moments.
type Meter struct {
	node   *server.Node
	began  time.Time
	before chain.Metrics
	cpu    time.Duration
}

// NewMeter starts a measurement.
func NewMeter(n *server.Node) *Meter {
	return &Meter{node: n, began: time.Now(), before: n.Metrics(), cpu: processorTime()}
}

// Fill adds to a report what a node in this process tells about the time since
// the meter was made.
func (m *Meter) Fill(r *Report) {
	seconds := time.Since(m.began).Seconds()
	d := m.node.Metrics().Minus(&m.before)
	if d.Transactions == 0 {
		return
	}
	r.CPU = float64((processorTime() - m.cpu).Microseconds()) / float64(d.Transactions)
	r.Aborts = map[string]uint64{}
	for cause, n := range d.Aborts {
		if n > 0 {
			r.Aborts[chain.Cause(cause).String()] = n
		}
	}
	perTx := func(us uint64) float64 { return float64(us) / float64(d.Transactions) }
	r.Stages = map[string]float64{
		"1 check": perTx(d.CheckMicros), "2 verify": perTx(d.VerifyMicros), "3 execute": perTx(d.ExecuteMicros),
		"4 decide": perTx(d.DecideMicros), "5 apply": perTx(d.ApplyMicros), "6 reexecute": perTx(d.ReexecuteMicros),
		"7 system": perTx(d.SystemMicros), "8 commit": perTx(d.CommitMicros),
	}
	perBlock := func(us uint64) float64 { return float64(us) / float64(d.Blocks) / 1e3 }
	blocks := float64(d.Blocks)
	commit := d.DecideMicros + d.ApplyMicros + d.CommitMicros
	all := d.CheckMicros + d.VerifyMicros + d.ExecuteMicros + d.ReexecuteMicros + d.SystemMicros + commit
	r.Micro = &Micro{
		BRR: blocks / seconds, BPR: blocks / seconds, BPT: perBlock(all), BET: perBlock(d.ExecuteMicros + d.ReexecuteMicros),
		BCT: perBlock(commit), TET: perTx(d.ExecuteMicros) / 1e3, MT: float64(d.Missing) / seconds,
		SU: float64(all) / 1e4 / seconds, TPB: float64(d.Transactions) / blocks,
	}
}

// processorTime is what this process has used of all processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
