package sql

import (
	"context"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// envelopeFunction hands over a transaction that the client has signed itself:
// SELECT tallystick_submit($1), with the canonical bytes of the transaction. It
// returns the canonical bytes of the call's result.
const envelopeFunction = "tallystick_submit"

// envelopeArg returns the argument of SELECT tallystick_submit(x); nil for any
// other statement.
func envelopeArg(n *pg.SelectStmt) *pg.Node {
	if n == nil || len(n.TargetList) != 1 || len(n.FromClause) > 0 || n.WhereClause != nil {
		return nil
	}
	call := n.TargetList[0].GetResTarget().Val.GetFuncCall()
	if call == nil || len(call.Funcname) != 1 || call.Funcname[0].GetString_().GetSval() != envelopeFunction || len(call.Args) != 1 {
		return nil
	}
	return call.Args[0]
}

// analyzeEnvelope plans the argument as a query of its own.
func (s *Session) analyzeEnvelope(ctx context.Context, p *Prepared, arg *pg.Node) error {
	bytea := &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("bytea")}, Typemod: -1, Location: -1}
	cast := &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: arg, TypeName: bytea, Location: -1}}}
	inner := &Prepared{Statement: p.Statement, declared: p.declared}
	inner.Statement.Node = &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: &pg.SelectStmt{
		TargetList:  []*pg.Node{{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: cast, Location: -1}}}},
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
	}}}
	if err := s.analyzeQuery(ctx, inner); err != nil {
		return err
	}
	p.params = inner.params
	p.columns = []plan.Column{{Name: envelopeFunction, Type: datum.T(datum.Bytea)}}
	p.run = func(ctx context.Context, args []datum.Datum) (rowSource, error) {
		return s.runEnvelope(ctx, inner, args)
	}
	return nil
}

func (s *Session) runEnvelope(ctx context.Context, inner *Prepared, args []datum.Datum) (rowSource, error) {
	if s.opts.Envelope == nil {
		return nil, pgerr.New(pgerr.ReadOnlySQLTransaction, "this connection does not accept transactions")
	}
	pt, err := s.Bind(ctx, inner, args)
	if err != nil {
		return nil, err
	}
	defer pt.Close()
	row, err := pt.Next(ctx)
	if err != nil {
		return nil, err
	}
	if row == nil || row[0].IsNull() {
		return nil, pgerr.New(pgerr.NullValueNotAllowed, "transaction must not be null")
	}
	out, err := s.opts.Envelope(ctx, append([]byte(nil), row[0].Bytes()...))
	if err != nil {
		return nil, err
	}
	return &rows{list: out.Rows, tag: "SELECT 1"}, nil
}
