package server

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// simSource makes genesis, transactions and blocks of a simulation.
type simSource struct {
	rng     *rand.Rand
	genesis *block.Genesis
	network block.Hash
	last    *block.Block
	signers map[identity.UserID]*identity.Signer
	orderer *identity.Signer
	nonce   uint64
	sent    []*block.Tx // to be sent again now and then
	deploys int64
	voted   map[int]block.Height
}

var simOrgs = []string{"acme", "bank", "city"}

// simSchema is what the first block deploys: hot rows, ranges, unique and foreign
// keys, deletions, sums over what others write, errors, and rows of any size.
const simSchema = `
CREATE TABLE accounts (id int PRIMARY KEY, owner text NOT NULL, balance bigint NOT NULL CHECK (balance >= 0));
CREATE UNIQUE INDEX accounts_owner ON accounts (owner);
CREATE TABLE moves (src int NOT NULL REFERENCES accounts, dst int NOT NULL REFERENCES accounts, n int NOT NULL, amount bigint NOT NULL, PRIMARY KEY (src, n));
CREATE INDEX moves_dst ON moves (dst);
CREATE TABLE totals (low int, high int, total bigint, PRIMARY KEY (low, high));
CREATE TABLE notes (id int PRIMARY KEY, body text);
CREATE FUNCTION sim_open(p_id int, p_balance bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN INSERT INTO accounts VALUES (p_id, 'owner ' || p_id, p_balance); END $$;
CREATE FUNCTION sim_move(p_src int, p_dst int, p_amount bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE k int; b bigint;
BEGIN
  SELECT count(*) INTO k FROM moves WHERE src = p_src;
  UPDATE accounts SET balance = balance - p_amount WHERE id = p_src RETURNING balance INTO b;
  UPDATE accounts SET balance = balance + p_amount WHERE id = p_dst;
  INSERT INTO moves VALUES (p_src, p_dst, k, p_amount);
  RETURN b;
END $$;
CREATE FUNCTION sim_sum(p_low int, p_high int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE s bigint;
BEGIN
  SELECT sum(balance) INTO s FROM accounts WHERE id BETWEEN p_low AND p_high;
  INSERT INTO totals VALUES (p_low, p_high, s) ON CONFLICT (low, high) DO UPDATE SET total = excluded.total;
  RETURN s;
END $$;
CREATE FUNCTION sim_forget(p_src int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
  DELETE FROM moves WHERE src = p_src;
  GET DIAGNOSTICS n = ROW_COUNT;
  IF n = 0 THEN RAISE EXCEPTION 'nothing to forget of %', p_src; END IF;
  RETURN n;
END $$;
CREATE FUNCTION sim_note(p_id int, p_times int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO notes VALUES (p_id, repeat('tally ', p_times) || tx_uuid()::text) ON CONFLICT (id) DO UPDATE SET body = notes.body || '!' ;
EXCEPTION WHEN check_violation THEN
  RAISE NOTICE 'no note';
END $$;
CREATE FUNCTION sim_drop(p_id int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN DELETE FROM notes WHERE id = p_id; END $$;`

func newSimSource(rng *rand.Rand) *simSource {
	s := &simSource{rng: rng, signers: map[identity.UserID]*identity.Signer{}, orderer: identity.NewSigner(seedKey(1)), voted: map[int]block.Height{}}
	p := block.DefaultParams()
	p.Flow = []string{block.FlowOrderThenExecute, block.FlowExecuteOrderInParallel}[rng.IntN(2)]
	p.Rule = []string{block.RuleAbortDuringCommit, block.RuleBlockAware, block.RuleExact}[rng.IntN(3)]
	p.Conflicts = []string{block.ConflictsAbort, block.ConflictsReexecute}[rng.IntN(2)]
	p.SnapshotWindow, p.ValidityWindow, p.CheckpointEvery = 6, 40, uint64(1+rng.IntN(16))
	p.ReexecuteRounds = uint64(1 + rng.IntN(3))
	g := &block.Genesis{Network: "sim", Timestamp: 1_700_000_000_000_000, Params: p,
		Orderers: identity.OrdererSet{Keys: []identity.PublicKey{s.orderer.Public()}, Quorum: 1}}
	for i, name := range simOrgs {
		org := block.Org{Name: name}
		for j, u := range []struct {
			name string
			role identity.Role
		}{{"admin", identity.Admin}, {"client", identity.Client}, {"node", identity.Node}} {
			signer := identity.NewSigner(seedKey(uint64(10 + 10*i + j)))
			s.signers[identity.UserID{Org: name, Name: u.name}] = signer
			org.Users = append(org.Users, block.User{Name: u.name, Role: u.role, Key: signer.Public()})
		}
		g.Orgs = append(g.Orgs, org)
	}
	g.Sort()
	first, err := g.Block()
	if err != nil {
		panic(err) // a fixed genesis
	}
	s.genesis, s.network, s.last = g, g.NetworkID(), first
	return s
}

// sign makes a transaction.
func (s *simSource) sign(user identity.UserID, name string, args ...any) *block.Tx {
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
		}
	}
	call, err := contracts.MakeCall(catalog.Blockchain, name, types, values)
	if err != nil {
		panic(err) // the calls are fixed
	}
	s.nonce++
	height := s.last.Number
	tx := &block.Tx{Network: s.network, User: user, Call: call, Time: s.last.Timestamp, ValidUntil: height + 1 + uint64(s.rng.IntN(38))}
	if s.genesis.Params.Flow == block.FlowExecuteOrderInParallel {
		tx.Snapshot = height - min(height, uint64(s.rng.IntN(10)*s.rng.IntN(2))) // now and then too old
	}
	if s.rng.IntN(20) == 0 {
		tx.Flags = block.NoReexecute
	}
	binary.BigEndian.PutUint64(tx.Nonce[:], s.nonce)
	if err := tx.Sign(s.signers[user]); err != nil {
		panic(err)
	}
	return tx
}

func (s *simSource) vote(c *chain.Chain, node int, height block.Height, state block.Hash) *block.Tx {
	id := identity.UserID{Org: simOrgs[node%len(simOrgs)], Name: "node"}
	if node >= len(simOrgs) || s.voted[node] >= height {
		return nil
	}
	s.voted[node] = height
	tx, err := c.CheckpointTx(id, s.signers[id], height, state, s.last.Timestamp)
	if err != nil {
		panic(err)
	}
	return tx
}

func (s *simSource) admin(i int) identity.UserID {
	return identity.UserID{Org: simOrgs[i], Name: "admin"}
}

func (s *simSource) deploy(script string) []*block.Tx {
	s.deploys++
	txs := []*block.Tx{s.sign(s.admin(0), "create_deploytx", script)}
	for i := range simOrgs {
		txs = append(txs, s.sign(s.admin(i), "approve_deploytx", s.deploys))
	}
	return append(txs, s.sign(s.admin(0), "submit_deploytx", s.deploys))
}

// transactions are those of the next block.
func (s *simSource) transactions() (txs []*block.Tx) {
	switch s.last.Number {
	case 0:
		return nil // the deployment is serial: see block
	case 1, 2:
		for i := range 20 {
			txs = append(txs, s.sign(s.admin(0), "sim_open", 20*int(s.last.Number-1)+i, int64(1000)))
		}
		return txs
	}
	for range s.rng.IntN(12) * s.rng.IntN(3) {
		txs = append(txs, s.random())
	}
	return txs
}

func (s *simSource) random() *block.Tx {
	user := identity.UserID{Org: simOrgs[s.rng.IntN(len(simOrgs))], Name: "client"}
	account := func() int { return s.rng.IntN(1 + s.rng.IntN(42)) } // low ones are hot, the last do not exist
	var tx *block.Tx
	switch k := s.rng.IntN(100); {
	case k < 45:
		tx = s.sign(user, "sim_move", account(), account(), int64(s.rng.IntN(120)))
	case k < 60:
		low := account()
		tx = s.sign(user, "sim_sum", low, low+s.rng.IntN(20))
	case k < 68:
		tx = s.sign(user, "sim_forget", account())
	case k < 82:
		tx = s.sign(user, "sim_note", s.rng.IntN(30), s.rng.IntN(200))
	case k < 90:
		tx = s.sign(user, "sim_drop", s.rng.IntN(30))
	case k < 92:
		tx = s.sign(user, "sim_open", s.rng.IntN(100), int64(5))
	case k < 94:
		tx = s.sign(user, "no_such_contract", 1)
	case k < 95:
		tx = s.sign(user, "sim_note", s.rng.IntN(30), -1)
		forged, err := block.DecodeTx(encodeForged(tx))
		if err != nil {
			panic(err)
		}
		return forged
	case k < 97 && len(s.sent) > 0:
		return s.sent[s.rng.IntN(len(s.sent))]
	case k < 98:
		tx = s.sign(s.admin(s.rng.IntN(3)), "create_deploytx", fmt.Sprintf("CREATE TABLE t%d (id int PRIMARY KEY)", s.rng.IntN(5)))
		s.deploys++
	default:
		tx = s.sign(s.admin(s.rng.IntN(3)), "comment_deploytx", int64(1+s.rng.IntN(3)), "simulated")
	}
	if len(s.sent) < 200 {
		s.sent = append(s.sent, tx)
	} else {
		s.sent[s.rng.IntN(len(s.sent))] = tx
	}
	return tx
}

// encodeForged is a transaction with a signature that is not its user's.
func encodeForged(tx *block.Tx) []byte {
	raw := append([]byte(nil), tx.Encode()...)
	raw[len(raw)-20] ^= 1
	return raw
}

// block seals the next block.
func (s *simSource) block(txs []*block.Tx) (*block.Block, error) {
	if s.last.Number == 0 {
		txs = s.deploy(simSchema)
	}
	b := &block.Block{
		Number: s.last.Number + 1, PrevHash: s.last.Hash(), ConfigID: s.network,
		Timestamp: s.last.Timestamp + 1 + int64(s.rng.IntN(1_000_000)), Txs: txs,
	}
	digest := identity.VoteDigest(s.network, 0, b.Seal())
	cert := identity.Certificate{Votes: []identity.Vote{{Signature: s.orderer.Sign(digest[:])}}}
	b.Certificate = cert.Encode()
	s.last = b
	return block.DecodeBlock(b.Encode())
}
