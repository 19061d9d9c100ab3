package wallet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// network is a chain that answers what a test wants and keeps what it was
// given.
type network struct {
	height  block.Height
	answer  func(*block.Tx) (*chain.Receipt, error)
	members []chain.User
	try     func(owner identity.UserID, ddl string) error
	txs     []*block.Tx
	notices []string
}

const (
	testTime     = 1_700_000_000_000_000
	testValidFor = 20
)

var testNetwork = block.Hash{7}

func (n *network) submit(_ context.Context, tx *block.Tx) (*chain.Receipt, error) {
	n.txs = append(n.txs, tx)
	return n.answer(tx)
}

func (n *network) notice(severity string, e *pgerr.Error) {
	n.notices = append(n.notices, severity+" "+string(e.Code)+" "+e.Message)
}

// calls lists the functions that were called, with the arguments.
func (n *network) calls() []string {
	var list []string
	for _, tx := range n.txs {
		list = append(list, contracts.CallText(&tx.Call))
	}
	return list
}

func newWallet(t *testing.T, n *network) (*Wallet, map[string]*identity.Signer) {
	t.Helper()
	w, err := New(Options{
		Network: testNetwork, Org: "dev", ValidFor: testValidFor,
		Height: func() block.Height { return n.height },
		Submit: n.submit,
		Users:  func() ([]chain.User, error) { return n.members, nil },
		Clock:  func() int64 { return testTime },
		Try:    n.try,
	})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]*identity.Signer{}
	for _, user := range []string{"admin", "alice"} {
		if keys[user], err = identity.GenerateSigner(rand.Reader); err != nil {
			t.Fatal(err)
		}
		if err := w.Add(user, keys[user]); err != nil {
			t.Fatal(err)
		}
	}
	return w, keys
}

func committed(result []byte) func(*block.Tx) (*chain.Receipt, error) {
	return func(tx *block.Tx) (*chain.Receipt, error) {
		return &chain.Receipt{ID: tx.ID(), Height: 17, Position: 1, Status: chain.Committed, Result: result}, nil
	}
}

var payCall = sql.Call{
	Schema: "blockchain", Name: "pay", ArgTypes: []datum.Type{datum.T(datum.Text), datum.T(datum.Int8)},
	Args: []datum.Datum{datum.Str("bob"), datum.Null}, Columns: []plan.Column{{Name: "pay", Type: datum.T(datum.Int8)}},
}

func TestSubmitSignsTheCall(t *testing.T) {
	result, err := contracts.EncodeRows(payCall.Columns, [][]datum.Datum{{datum.Int(42)}})
	if err != nil {
		t.Fatal(err)
	}
	n := &network{height: 16, answer: committed(result)}
	w, keys := newWallet(t, n)
	s := w.Session("alice", n.notice)
	call := payCall
	for range 2 {
		out, err := s.Submit(context.Background(), &call)
		if err != nil {
			t.Fatal(err)
		}
		if out.Height != 17 || len(out.Rows) != 1 || out.Rows[0][0].Int() != 42 {
			t.Errorf("outcome %+v", out)
		}
	}
	for _, tx := range n.txs {
		// What the network gets is what travels: look at the bytes.
		got, err := block.DecodeTx(tx.Encode())
		if err != nil {
			t.Fatal(err)
		}
		digest := got.SigningDigest()
		if !identity.Verify(keys["alice"].Public(), digest[:], got.Signature) {
			t.Error("the signature does not verify")
		}
		if got.Network != testNetwork || got.User != (identity.UserID{Org: "dev", Name: "alice"}) || got.Time != testTime ||
			got.Snapshot != 16 || got.ValidUntil != 16+testValidFor {
			t.Errorf("signed %+v", got)
		}
		if text := contracts.CallText(&got.Call); text != "blockchain.pay('bob', NULL)" {
			t.Errorf("signed call %s", text)
		}
	}
	if n.txs[0].ID() == n.txs[1].ID() {
		t.Error("two equal calls are one transaction")
	}
	if len(n.notices) != 1 || !strings.Contains(n.notices[0], "signs for whoever is connected") {
		t.Errorf("notices %q, want the warning once", n.notices)
	}
	if _, err := w.Session("alice", n.notice).Submit(context.Background(), &call); err != nil || len(n.notices) != 2 {
		t.Errorf("another connection: error %v, notices %q", err, n.notices)
	}
}

func TestSubmitPassesOnWhatTheContractSays(t *testing.T) {
	raised := pgerr.New("P0001", "insufficient funds").WithDetail("The balance is 1.").WithHint("Pay in.")
	raised.Context = "PL/pgSQL function pay(text,bigint) line 3 at RAISE"
	n := &network{answer: func(tx *block.Tx) (*chain.Receipt, error) {
		return &chain.Receipt{ID: tx.ID(), Status: chain.Failed, Err: raised, Notices: []chain.Notice{
			{Severity: "NOTICE", Error: pgerr.New("00000", "first")}, {Severity: "WARNING", Error: pgerr.New("01000", "second")},
		}}, nil
	}}
	w, _ := newWallet(t, n)
	_, err := w.Session("alice", n.notice).Submit(context.Background(), &payCall)
	e, ok := pgerr.From(err)
	if !ok || *e != *raised {
		t.Errorf("error %#v, want %#v", err, raised)
	}
	if want := []string{"NOTICE 00000 first", "WARNING 01000 second"}; fmt.Sprint(n.notices[1:]) != fmt.Sprint(want) {
		t.Errorf("notices %q, want %q", n.notices[1:], want)
	}
}

func TestSubmitRefusals(t *testing.T) {
	fault := errors.New("disk on fire")
	large := payCall
	large.Args = []datum.Datum{datum.Str(strings.Repeat("x", block.MaxTxBytes)), datum.Int(1)}
	for _, tc := range []struct {
		name, user string
		call       *sql.Call
		answer     error
		code       pgerr.Code
		sent       int
	}{
		{"user without key", "mallory", &payCall, nil, "28000", 0},
		{"arguments beyond a transaction", "alice", &large, nil, "54000", 0},
		{"refused by the network", "alice", &payCall, pgerr.New("53000", "busy"), "53000", 1},
		{"fault of the node", "alice", &payCall, fault, "XX000", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := &network{answer: func(*block.Tx) (*chain.Receipt, error) { return nil, tc.answer }}
			w, _ := newWallet(t, n)
			_, err := w.Session(tc.user, n.notice).Submit(context.Background(), tc.call)
			if err == nil || pgerr.CodeOf(err) != tc.code || len(n.txs) != tc.sent {
				t.Errorf("error %v, %d transactions sent; want SQLSTATE %s and %d", err, len(n.txs), tc.code, tc.sent)
			}
			if tc.answer == fault && !errors.Is(err, fault) {
				t.Errorf("error %v hides the fault", err)
			}
		})
	}
}

func TestCanceledCallIsNotForgotten(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &network{answer: func(*block.Tx) (*chain.Receipt, error) {
		cancel()
		return nil, ctx.Err()
	}}
	w, _ := newWallet(t, n)
	_, err := w.Session("alice", n.notice).Submit(ctx, &payCall)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if len(n.notices) != 2 || !strings.Contains(n.notices[1], "may still commit") {
		t.Errorf("notices %q", n.notices)
	}
}

// deployer answers the deploy contracts; fail is the one that fails.
func deployer(t *testing.T, fail string) func(*block.Tx) (*chain.Receipt, error) {
	id, err := contracts.EncodeRows([]plan.Column{{Type: datum.T(datum.Int8)}}, [][]datum.Datum{{datum.Int(3)}})
	if err != nil {
		t.Fatal(err)
	}
	void, err := contracts.EncodeRows([]plan.Column{{Type: datum.T(datum.Void)}}, [][]datum.Datum{{datum.Datum{}}})
	if err != nil {
		t.Fatal(err)
	}
	return func(tx *block.Tx) (*chain.Receipt, error) {
		r := &chain.Receipt{ID: tx.ID(), Height: 17, Status: chain.Committed, Result: void}
		switch tx.Call.Name {
		case fail:
			r.Status, r.Result, r.Err = chain.Failed, nil, pgerr.New("42P07", "relation \"t\" already exists").At(14)
		case "create_deploytx":
			r.Result = id
		}
		return r, nil
	}
}

var (
	admin    = chain.User{ID: identity.UserID{Org: "dev", Name: "admin"}, Role: identity.Admin}
	alice    = chain.User{ID: identity.UserID{Org: "dev", Name: "alice"}, Role: identity.Client}
	stranger = chain.User{ID: identity.UserID{Org: "mill", Name: "admin"}, Role: identity.Admin}
	revoked  = chain.User{ID: identity.UserID{Org: "dev", Name: "admin"}, Role: identity.Admin, Revoked: 9}
)

func TestScriptDeploys(t *testing.T) {
	n := &network{members: []chain.User{admin, alice}, answer: deployer(t, "")}
	w, _ := newWallet(t, n)
	out, err := w.Session("admin", n.notice).Script(context.Background(), "CREATE TABLE t(id int PRIMARY KEY)")
	if err != nil || out.Height != 17 {
		t.Fatalf("outcome %+v, error %v", out, err)
	}
	want := []string{"blockchain.create_deploytx('CREATE TABLE t(id int PRIMARY KEY)')",
		"blockchain.approve_deploytx(3)", "blockchain.submit_deploytx(3)"}
	if got := n.calls(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	for _, tx := range n.txs {
		if !contracts.IsSystem(&tx.Call) {
			t.Errorf("%s is no system contract", contracts.CallText(&tx.Call))
		}
	}
	last := n.notices[len(n.notices)-1]
	if last != "NOTICE 00000 DDL was proposed, approved and deployed as deploytx 3 in block 17: organization dev is the only one" {
		t.Errorf("notice %q", last)
	}
}

func TestScriptErrors(t *testing.T) {
	for _, tc := range []struct {
		name, user string
		members    []chain.User
		fail       string
		code       pgerr.Code
		sent       int
		text       string // in detail, hint or context
	}{
		{"client", "alice", []chain.User{admin, alice}, "", "42501", 0, "dev/alice is none"},
		{"unknown to the chain", "admin", []chain.User{alice}, "", "42501", 0, "dev/admin is none"},
		{"revoked", "admin", []chain.User{alice, revoked}, "", "42501", 0, "dev/admin is none"},
		{"several organizations", "admin", []chain.User{admin, stranger}, "", "42501", 0, "create_deploytx"},
		{"refused proposal", "admin", []chain.User{admin}, "create_deploytx", "42P07", 1, ""},
		{"refused approval", "admin", []chain.User{admin}, "approve_deploytx", "42P07", 2, "deploytx 3, which stays proposed"},
		{"script that fails", "admin", []chain.User{admin}, "submit_deploytx", "42P07", 3, "deploytx 3, which stays proposed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := &network{members: tc.members, answer: deployer(t, tc.fail)}
			w, _ := newWallet(t, n)
			_, err := w.Session(tc.user, n.notice).Script(context.Background(), "CREATE TABLE t(id int PRIMARY KEY)")
			e, ok := pgerr.From(err)
			if !ok || e.Code != tc.code || len(n.txs) != tc.sent {
				t.Fatalf("error %v, calls %q; want SQLSTATE %s", err, n.calls(), tc.code)
			}
			if said := e.Detail + e.Hint + e.Context; !strings.Contains(said, tc.text) {
				t.Errorf("said %q, want %q in it", said, tc.text)
			}
			if tc.fail == "submit_deploytx" && e.Position != 14 {
				t.Errorf("position %d is lost", e.Position)
			}
			for _, notice := range n.notices {
				if strings.Contains(notice, "deployed as") {
					t.Errorf("notice %q", notice)
				}
			}
		})
	}
}

// TestScriptIsTriedFirst: what cannot be deployed leaves no trace in the chain.
func TestScriptIsTriedFirst(t *testing.T) {
	const ddl = "CREATE TABLE t(id int PRIMARY KEY)"
	var tried []string
	var refusal error
	n := &network{members: []chain.User{admin}, answer: deployer(t, ""), try: func(owner identity.UserID, ddl string) error {
		tried = append(tried, owner.String()+" "+ddl)
		return refusal
	}}
	w, _ := newWallet(t, n)
	refusal = pgerr.New("42P07", "relation \"t\" already exists")
	if _, err := w.Session("admin", n.notice).Script(context.Background(), ddl); err != refusal || len(n.txs) != 0 {
		t.Errorf("error %v, calls %q", err, n.calls())
	}
	refusal = nil
	if _, err := w.Session("admin", n.notice).Script(context.Background(), ddl); err != nil || len(n.txs) != 3 {
		t.Errorf("error %v, calls %q", err, n.calls())
	}
	if want := "dev/admin " + ddl; len(tried) != 2 || tried[0] != want || tried[1] != want {
		t.Errorf("tried %q, want %q twice", tried, want)
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(Options{Org: "dev"}); err == nil {
		t.Error("a wallet without network")
	}
	w, _ := newWallet(t, &network{})
	if err := w.Add("No Name", nil); err == nil {
		t.Error("a key for an impossible user")
	}
	if !w.Has("alice") || w.Has("carol") {
		t.Error("Has does not tell whose keys are there")
	}
}
