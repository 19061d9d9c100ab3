package wallet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// checker decides what a wallet signs: calls that its client has written, with the
// arguments that it has written, and nothing that the node would like instead.
type checker struct {
	network block.Hash
	user    identity.UserID
	clock   func() time.Time
	// session makes a session that evaluates constants, in the settings of the
	// client. It knows built-in types and functions and no tables.
	session func(settings [][2]string) *sql.Session
	trust   bool // arguments are not checked
}

// maxLifetime bounds the blocks for which a signature stays good; the network's
// own window is smaller.
const maxLifetime = 1 << 20

// check returns why a transaction is not signed; nil if it may be. It marks the
// statement that it is signed for.
func (c *checker) check(ctx context.Context, tx *block.Tx, current []*intent, settings [][2]string) *pgerr.Error {
	switch {
	case tx.Network != c.network:
		return refuse("the node asks for a signature for another network").WithDetail("It is network %s, and the wallet is of network %s.", tx.Network, c.network)
	case tx.User != c.user:
		return refuse("the node asks for a signature of %s", tx.User)
	case tx.ValidUntil > tx.Snapshot+maxLifetime:
		return refuse("the node asks for a signature that is valid until block %d", tx.ValidUntil)
	}
	var why error
	for _, i := range current {
		if err := c.fits(ctx, tx, i, settings); err == nil {
			i.signed = append(i.signed, tx.Call.Name)
			return nil
		} else if why == nil || i.call != nil {
			why = err
		}
	}
	e := refuse("the wallet does not sign %s", contracts.CallText(&tx.Call))
	if why == nil {
		why = errors.New("the client has not asked for it")
	}
	return e.WithDetail("It is not what the client has written: %v.", why).
		WithHint("Write the arguments as constants or parameters. trust_node in %s signs what the node makes of them, unchecked.", "wallet.toml")
}

func refuse(format string, args ...any) *pgerr.Error {
	return pgerr.New(pgerr.InsufficientPrivilege, format, args...)
}

// fits reports why a call is not the one of a statement.
func (c *checker) fits(ctx context.Context, tx *block.Tx, i *intent, settings [][2]string) error {
	switch {
	case i.ddl:
		return i.deploys(&tx.Call)
	case i.call == nil:
		return errors.New("the statement is no call")
	case len(i.signed) > 0:
		return errors.New("the statement was signed for already")
	}
	if err := sameName(i.call, &tx.Call); err != nil {
		return err
	}
	if c.trust {
		return nil
	}
	return c.sameArguments(ctx, i, &tx.Call, settings)
}

// deploys admits the three calls by which the only organization of a network
// deploys what its admin types, each once and in order.
func (i *intent) deploys(call *block.Call) error {
	steps := []string{"create_deploytx", "approve_deploytx", "submit_deploytx"}
	if call.Schema != "blockchain" || len(i.signed) >= len(steps) || steps[len(i.signed)] != call.Name {
		return errors.New("the statement is no call")
	}
	if len(i.signed) > 0 {
		return nil // of what was created a moment ago
	}
	bare := func(s string) string { return strings.TrimRight(strings.TrimSpace(s), "; \n\t") }
	if len(call.Args) != 1 || bare(string(call.Args[0].Value)) != bare(i.text) {
		return errors.New("the definition differs from the statement")
	}
	return nil
}

// sameName compares the function's name; without a schema it is that of contracts.
func sameName(f *pg.FuncCall, call *block.Call) error {
	var parts []string
	for _, n := range f.GetFuncname() {
		parts = append(parts, n.GetString_().GetSval())
	}
	if len(parts) == 1 {
		parts = []string{"blockchain", parts[0]}
	}
	if !slices.Equal(parts, []string{call.Schema, call.Name}) {
		return fmt.Errorf("the statement calls %s", strings.Join(parts, "."))
	}
	return nil
}

// sameArguments evaluates the arguments of the statement and compares them with
// those of the call. Arguments beyond those written are the function's defaults,
// which are part of the contract.
func (c *checker) sameArguments(ctx context.Context, i *intent, call *block.Call, settings [][2]string) error {
	if len(i.call.GetArgs()) > len(call.Args) {
		return fmt.Errorf("the statement has %d arguments", len(i.call.GetArgs()))
	}
	s := c.session(settings)
	defer s.Close()
	free := make([]bool, len(call.Args)) // not taken by an argument that was written
	for k := range free {
		free[k] = true
	}
	for n, arg := range i.call.GetArgs() {
		if named := arg.GetNamedArgExpr(); named != nil {
			k := c.findNamed(ctx, s, i, named.GetArg(), call, free)
			if k < 0 {
				return fmt.Errorf("no argument has the value of %s", named.GetName())
			}
			free[k] = false
			continue
		}
		if i.call.GetFuncVariadic() {
			return errors.New("VARIADIC arguments cannot be checked")
		}
		if err := c.sameValue(ctx, s, i, arg, call, n); err != nil {
			return fmt.Errorf("argument %d: %w", n+1, err)
		}
		free[n] = false
	}
	return nil
}

// findNamed looks for the argument that a named one became.
func (c *checker) findNamed(ctx context.Context, s *sql.Session, i *intent, expr *pg.Node, call *block.Call, free []bool) int {
	for k := range call.Args {
		if free[k] && c.sameValue(ctx, s, i, expr, call, k) == nil {
			return k
		}
	}
	return -1
}

// sameValue evaluates one argument in its type.
func (c *checker) sameValue(ctx context.Context, s *sql.Session, i *intent, expr *pg.Node, call *block.Call, n int) error {
	want := &call.Args[n]
	v, t, err := c.evaluate(ctx, s, i, expr, call.ArgTypes[n])
	if err != nil {
		// A type of the network's own: labels of enums are sent as they are
		// written.
		if text, ok := i.literal(expr); ok && !want.Null && text == string(want.Value) {
			return nil
		}
		return err
	}
	if v.IsNull() || want.Null {
		if v.IsNull() != want.Null {
			return errors.New("one is NULL, the other is not")
		}
		return nil
	}
	if got := t.AppendBinary(nil, v); !bytes.Equal(got, want.Value) {
		return errors.New("another value")
	}
	return nil
}

// evaluate computes CAST(expr AS type).
func (c *checker) evaluate(ctx context.Context, s *sql.Session, i *intent, expr *pg.Node, typeName string) (datum.Datum, datum.Type, error) {
	fail := func(err error) (datum.Datum, datum.Type, error) { return datum.Null, datum.Type{}, err }
	text, err := deparse(expr)
	if err != nil {
		return fail(err)
	}
	st, err := parse.One("SELECT CAST((" + text + ") AS " + typeName + ")")
	if err != nil {
		return fail(err)
	}
	oids := make([]datum.OID, len(i.types))
	for k, o := range i.types {
		oids[k] = datum.OID(o)
	}
	p, err := s.Prepare(ctx, "", st, oids)
	if err != nil {
		return fail(err)
	}
	if len(p.Columns()) != 1 {
		return fail(errors.New("no value"))
	}
	args, err := i.arguments(p.Params(), s.Format())
	if err != nil {
		return fail(err)
	}
	portal, err := s.Bind(ctx, p, args)
	if err != nil {
		return fail(err)
	}
	defer portal.Close()
	row, err := portal.Next(ctx)
	if err != nil {
		return fail(err)
	}
	if len(row) != 1 {
		return fail(errors.New("no value"))
	}
	return row[0], p.Columns()[0].Type, nil
}

// deparse writes an expression.
func deparse(expr *pg.Node) (string, error) {
	s := &pg.SelectStmt{
		TargetList:  []*pg.Node{{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: expr}}}},
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
	}
	version, err := treeVersion()
	if err != nil {
		return "", err
	}
	text, err := pg.Deparse(&pg.ParseResult{Version: version, Stmts: []*pg.RawStmt{{Stmt: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: s}}}}})
	return strings.TrimPrefix(text, "SELECT "), err
}

// treeVersion is the version of parse trees that the parser makes.
var treeVersion = sync.OnceValues(func() (int32, error) {
	r, err := pg.Parse("SELECT 1")
	return r.GetVersion(), err
})

// arguments reads the client's parameters.
func (i *intent) arguments(params []datum.Type, f *datum.Format) ([]datum.Datum, error) {
	args := make([]datum.Datum, len(params))
	for k, t := range params {
		if k >= len(i.values) {
			return nil, fmt.Errorf("parameter $%d has no value", k+1)
		}
		v := i.values[k]
		var err error
		switch {
		case v == nil:
			args[k] = datum.Null
		case i.format(k) == pgproto3.BinaryFormat && t.ParseBinary != nil:
			args[k], err = t.ParseBinary(v, t.Mod)
		case i.format(k) == pgproto3.TextFormat && t.Parse != nil:
			if err = datum.CheckText(string(v)); err == nil {
				args[k], err = t.Parse(string(v), t.Mod, f)
			}
		default:
			err = fmt.Errorf("parameter $%d cannot be read", k+1)
		}
		if err != nil {
			return nil, err
		}
	}
	return args, nil
}

func (i *intent) format(k int) int16 {
	switch len(i.formats) {
	case 0:
		return pgproto3.TextFormat
	case 1:
		return i.formats[0]
	}
	if k >= len(i.formats) {
		return -1
	}
	return i.formats[k]
}

// literal is the text of a string constant or a parameter, in a cast or not.
func (i *intent) literal(expr *pg.Node) (string, bool) {
	if cast := expr.GetTypeCast(); cast != nil {
		expr = cast.GetArg()
	}
	if c := expr.GetAConst(); c.GetSval() != nil {
		return c.GetSval().GetSval(), true
	}
	if p := expr.GetParamRef(); p != nil && int(p.GetNumber()) <= len(i.values) && p.GetNumber() > 0 {
		v := i.values[p.GetNumber()-1]
		return string(v), v != nil
	}
	return "", false
}
