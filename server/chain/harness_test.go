package chain

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

const genesisTime = 1_700_000_000_000_000

var orderer = identity.NewSigner([32]byte{200})

func signerOf(n byte) *identity.Signer { return identity.NewSigner([32]byte{n, 1}) }

// The users of the test network.
var (
	admin1  = identity.UserID{Org: "org1", Name: "admin"}
	admin2  = identity.UserID{Org: "org2", Name: "admin"}
	alice   = identity.UserID{Org: "org1", Name: "alice"}
	bob     = identity.UserID{Org: "org2", Name: "bob"}
	signers = map[identity.UserID]*identity.Signer{
		admin1: signerOf(1), admin2: signerOf(2), alice: signerOf(3), bob: signerOf(4),
	}
)

func testGenesis(change func(*block.Params)) *block.Genesis {
	p := block.DefaultParams()
	p.Flow, p.Rule = block.FlowOrderThenExecute, block.RuleAbortDuringCommit
	if change != nil {
		change(&p)
	}
	user := func(id identity.UserID, r identity.Role) block.User {
		return block.User{Name: id.Name, Role: r, Key: signers[id].Public()}
	}
	return &block.Genesis{
		Network: "test", Timestamp: genesisTime,
		Orgs: []block.Org{
			{Name: "org1", Users: []block.User{user(admin1, identity.Admin), user(alice, identity.Client)}},
			{Name: "org2", Users: []block.User{user(admin2, identity.Admin), user(bob, identity.Client)}},
		},
		Orderers: identity.OrdererSet{Keys: []identity.PublicKey{orderer.Public()}, Quorum: 1},
		Params:   p,
	}
}

// source makes the blocks of a network.
type source struct {
	tb      testing.TB
	genesis *block.Genesis
	network block.Hash
	last    *block.Block
	nonce   uint64
}

func newSource(tb testing.TB, g *block.Genesis) *source {
	tb.Helper()
	b, err := g.Block()
	if err != nil {
		tb.Fatal(err)
	}
	return &source{tb: tb, genesis: g, network: g.NetworkID(), last: b}
}

// num is a numeric argument.
type num string

// call makes a call with arguments typed by their Go types.
func (s *source) call(name string, args ...any) block.Call {
	s.tb.Helper()
	var types []datum.Type
	var values []datum.Datum
	for _, a := range args {
		switch a := a.(type) {
		case string:
			types, values = append(types, datum.T(datum.Text)), append(values, datum.Str(a))
		case int:
			types, values = append(types, datum.T(datum.Int4)), append(values, datum.Int(int64(a)))
		case int64:
			types, values = append(types, datum.T(datum.Int8)), append(values, datum.Int(a))
		case []byte:
			types, values = append(types, datum.T(datum.Bytea)), append(values, datum.Bytes(a))
		case num:
			d, err := datum.Numeric.Parse(string(a), -1, &datum.ContractFormat)
			if err != nil {
				s.tb.Fatal(err)
			}
			types, values = append(types, datum.T(datum.Numeric)), append(values, d)
		default:
			s.tb.Fatalf("argument of type %T", a)
		}
	}
	c, err := contracts.MakeCall("blockchain", name, types, values)
	if err != nil {
		s.tb.Fatal(err)
	}
	return c
}

// tx signs a call that any of the next 100 blocks may contain.
func (s *source) tx(user identity.UserID, name string, args ...any) *block.Tx {
	s.tb.Helper()
	return s.signed(user, s.call(name, args...), nil)
}

func (s *source) signed(user identity.UserID, call block.Call, change func(*block.Tx)) *block.Tx {
	s.tb.Helper()
	s.nonce++
	tx := &block.Tx{
		Network: s.network, User: user, Call: call, Time: s.last.Timestamp,
		ValidUntil: s.last.Number + 100, Snapshot: s.last.Number,
	}
	binary.BigEndian.PutUint64(tx.Nonce[:], s.nonce)
	if change != nil {
		change(tx)
	}
	if err := tx.Sign(signers[user]); err != nil {
		s.tb.Fatal(err)
	}
	return tx
}

// block makes the next block.
func (s *source) block(txs ...*block.Tx) *block.Block {
	b := &block.Block{
		Number: s.last.Number + 1, PrevHash: s.last.Hash(), ConfigID: s.network,
		Timestamp: s.last.Timestamp + 1_000_000, Txs: txs,
	}
	s.last = certify(b, s.network)
	return b
}

func certify(b *block.Block, network block.Hash) *block.Block {
	digest := identity.VoteDigest(network, 0, b.Seal())
	cert := identity.Certificate{Votes: []identity.Vote{{Signature: orderer.Sign(digest[:])}}}
	b.Certificate = cert.Encode()
	return b
}

// node is a chain over stores in memory.
type node struct {
	tb      testing.TB
	blocks  *blockstore.Store
	store   *mvcc.Store
	engine  *sql.Engine
	chain   *Chain
	workers int
}

// openStores opens the two stores of a node, each on a file system, and the
// engine. The node is closed when the test ends.
func openStores(tb testing.TB, g *block.Genesis, blocksFS, stateFS vfs.FS) *node {
	tb.Helper()
	n := &node{tb: tb}
	var err error
	if n.blocks, err = blockstore.Open("blocks", blockstore.Options{FS: blocksFS, Genesis: g}); err != nil {
		tb.Fatal(err)
	}
	if n.store, err = mvcc.Open("state", mvcc.Options{FS: stateFS, MemTableBytes: 4 << 20, Logger: quiet}); err != nil {
		tb.Fatal(err)
	}
	n.engine = n.newEngine()
	return n
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func (n *node) options() Options {
	return Options{Store: n.store, Blocks: n.blocks, Engine: n.engine, System: system.New(n.engine, contracts.Inspect), Workers: n.workers, Logger: quiet}
}

func (n *node) close() {
	n.tb.Helper()
	if n.chain != nil {
		n.chain.Close()
	}
	if err := n.store.Close(); err != nil {
		n.tb.Error(err)
	}
	if err := n.blocks.Close(); err != nil {
		n.tb.Error(err)
	}
}

func newNode(tb testing.TB, g *block.Genesis, workers int) *node {
	tb.Helper()
	n := openNode(tb, g)
	n.workers = workers
	n.reopen()
	return n
}

// openNode opens the stores of a node without a chain, in memory.
func openNode(tb testing.TB, g *block.Genesis) *node {
	tb.Helper()
	n := openStores(tb, g, vfs.NewMem(), vfs.NewMem())
	tb.Cleanup(n.close)
	return n
}

// reopen opens the chain again over the same stores, as a restart does.
func (n *node) reopen() {
	n.tb.Helper()
	if n.chain != nil {
		n.chain.Close()
	}
	n.engine = n.newEngine()
	var err error
	if n.chain, err = Open(n.options()); err != nil {
		n.tb.Fatal(err)
	}
}

func (n *node) newEngine() *sql.Engine {
	return sql.NewEngine(n.store, contracts.NewFunctions().Exec(), sql.EngineOptions{ValidateFunction: contracts.ValidateFunction})
}

// process appends a block to the block store and processes it.
func (n *node) process(b *block.Block) []Receipt {
	n.tb.Helper()
	if err := n.blocks.Append(b); err != nil {
		n.tb.Fatal(err)
	}
	receipts, err := n.chain.Process(b)
	if err != nil {
		n.tb.Fatal(err)
	}
	if len(receipts) != len(b.Txs) {
		n.tb.Fatalf("%d receipts of %d transactions", len(receipts), len(b.Txs))
	}
	return receipts
}

// mustCommit fails the test unless all transactions committed.
func mustCommit(tb testing.TB, receipts []Receipt) {
	tb.Helper()
	for _, r := range receipts {
		if r.Status != Committed {
			tb.Fatalf("transaction at position %d is %s: %v %s", r.Position, r.Status, r.Err, detail(r.Err))
		}
	}
}

func detail(e *pgerr.Error) string {
	if e == nil {
		return ""
	}
	return e.Detail
}

// deployBlock makes a block with which both admins deploy a script, the id-th
// proposal.
func (s *source) deployBlock(id int64, script string, more ...*block.Tx) *block.Block {
	return s.block(append(more,
		s.tx(admin1, "create_deploytx", script),
		s.tx(admin1, "approve_deploytx", id),
		s.tx(admin2, "approve_deploytx", id),
		s.tx(admin1, "submit_deploytx", id))...)
}

// query runs a SELECT on the newest block and shows its rows.
func (n *node) query(text string) string {
	n.tb.Helper()
	txn := n.store.Begin(mvcc.AsOf(n.store.Height()), 0)
	defer txn.Close()
	cat, err := n.engine.Catalog(txn)
	if err != nil {
		n.tb.Fatal(err)
	}
	st, err := parse.One(text)
	if err != nil {
		n.tb.Fatal(err)
	}
	pl, err := plan.Statement(st.Node, &plan.Options{Catalog: cat, SearchPath: sql.SearchPath, Script: st.Script})
	if err != nil {
		n.tb.Fatalf("%s: %v", text, err)
	}
	prog, err := exec.Compile(pl)
	if err != nil {
		n.tb.Fatal(err)
	}
	env := &exec.Env{Txn: txn, Catalog: cat, ReadOnly: true}
	env.Ctx.Format = &datum.ContractFormat
	cur, err := prog.Open(env, nil)
	if err != nil {
		n.tb.Fatal(err)
	}
	defer cur.Close()
	out := ""
	for {
		row, err := cur.Next()
		if err != nil {
			n.tb.Fatal(err)
		}
		if row == nil {
			return out
		}
		for i, d := range row {
			if i > 0 {
				out += "|"
			}
			if !d.IsNull() {
				out += string(pl.Columns[i].Type.Append(nil, d, &datum.ContractFormat))
			}
		}
		out += "\n"
	}
}

// summary shows receipts compactly.
func summary(receipts []Receipt) string {
	out := ""
	for _, r := range receipts {
		out += fmt.Sprintf("%d %s", r.Position, r.Status)
		if r.Err != nil {
			out += fmt.Sprintf(" %s %s", r.Err.Code, r.Err.Message)
		}
		out += "\n"
	}
	return out
}

const bank = `
CREATE TABLE accounts (id int PRIMARY KEY, balance numeric NOT NULL CHECK (balance >= 0));
CREATE TABLE history (id bigint PRIMARY KEY, src int NOT NULL, dst int NOT NULL, amount numeric NOT NULL);
CREATE INDEX history_src ON history (src);
CREATE FUNCTION open_account(p_id int, p_balance numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO accounts VALUES (p_id, p_balance);
END $$;
CREATE FUNCTION transfer(p_id bigint, p_a int, p_b int, p_amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE va numeric; vb numeric;
BEGIN
  SELECT balance INTO va FROM accounts WHERE id = p_a;
  SELECT balance INTO vb FROM accounts WHERE id = p_b;
  IF va IS NULL OR vb IS NULL THEN RAISE EXCEPTION 'no such account' USING ERRCODE = 'P0002'; END IF;
  IF va < p_amount THEN RAISE EXCEPTION 'insufficient funds: % < %', va, p_amount; END IF;
  UPDATE accounts SET balance = va - p_amount WHERE id = p_a;
  UPDATE accounts SET balance = vb + p_amount WHERE id = p_b;
  INSERT INTO history VALUES (p_id, p_a, p_b, p_amount);
  RETURN va - p_amount;
END $$;
CREATE FUNCTION audit(p_id bigint, p_a int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint; t numeric;
BEGIN
  SELECT count(*), coalesce(sum(amount), 0) INTO n, t FROM history WHERE src = p_a;
  INSERT INTO history VALUES (p_id, p_a, p_a, t);
  RETURN n;
END $$;
CREATE FUNCTION greet(p_name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE 'greeting %', p_name;
  RETURN 'hello ' || p_name;
END $$;
`
