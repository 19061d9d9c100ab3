package sql

import (
	"context"
	"fmt"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// runCall computes the arguments of a contract call, hands it over to be
// signed and ordered, and shows its result.
func (s *Session) runCall(ctx context.Context, p *Prepared, args []datum.Datum) (rowSource, error) {
	if s.opts.Submit == nil {
		return nil, pgerr.New(pgerr.ReadOnlySQLTransaction, "this connection cannot sign calls of contracts").
			WithHint("Connect to a signing endpoint, or sign the call with the client library.")
	}
	if s.block.open && s.block.called {
		return nil, pgerr.New(pgerr.ActiveSQLTransaction, "a transaction block can hold one call of a contract")
	}
	if err := s.mayCall(p); err != nil {
		return nil, err
	}
	w, err := s.ready(ctx, p)
	if err != nil {
		return nil, err
	}
	defer w.close()
	cc := p.query.call
	call := &Call{Schema: cc.Func.Schema, Name: cc.Func.Name, Columns: plan.ResultColumns(cc.Func)}
	for i, x := range p.query.args {
		v, err := x.Eval(w.env, args)
		if err != nil {
			return nil, err
		}
		call.ArgTypes, call.Args = append(call.ArgTypes, cc.Func.InArgs()[i].Type), append(call.Args, v)
	}
	if s.block.open && s.opts.Hold != nil {
		s.block.called, s.block.heldAfter = true, len(s.block.savepoints)
		held, err := s.opts.Hold(ctx, call, w.snap.Height)
		if err != nil {
			return nil, err
		}
		s.block.held = held
		return callResult(cc, &Outcome{Rows: held.Rows}), nil
	}
	if s.block.open {
		s.block.called = true
		s.notice("WARNING", pgerr.New(pgerr.Warning, "the call of %s commits at once, not at the end of the transaction block", cc.Func.Name).
			WithHint("In flow order-then-execute a transaction is one call; ROLLBACK cannot undo it."))
	}
	out, err := s.opts.Submit(ctx, call)
	if err != nil {
		return nil, err
	}
	return callResult(cc, out), nil
}

// callResult shapes the rows of a call as the statement promised them.
func callResult(cc *plan.ContractCall, out *Outcome) rowSource {
	if cc.Func.Kind == "p" {
		return &rows{list: out.Rows, tag: "CALL"}
	}
	list := out.Rows
	if cc.Record {
		types := []datum.Type{}
		for _, a := range cc.Func.OutArgs() {
			types = append(types, a.Type)
		}
		list = make([][]datum.Datum, len(out.Rows))
		for i, r := range out.Rows {
			list[i] = []datum.Datum{datum.MakeRecord(types, r)}
		}
	}
	return &rows{list: list, tag: fmt.Sprintf("SELECT %d", len(list))}
}
