package chain

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
)

// benchSchema has the two contracts of the paper's evaluation that are bound by
// the chain rather than by SQL.
const benchSchema = `
CREATE TABLE simple_t (id bigint PRIMARY KEY, org int NOT NULL, acct int NOT NULL, kind text NOT NULL, status text NOT NULL,
  qty int NOT NULL, price numeric(12,2) NOT NULL, amount numeric(14,2) NOT NULL, ref text, created timestamp NOT NULL, note text);
CREATE TABLE accounts_chk (id int PRIMARY KEY, bal numeric(14,2) NOT NULL);
CREATE FUNCTION fill(p_from int, p_to int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO accounts_chk SELECT g, 10000 FROM generate_series(p_from, p_to) g;
END $$;
CREATE FUNCTION c_simple(p_id bigint, p_org int, p_acct int, p_qty int, p_price numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO simple_t(id,org,acct,kind,status,qty,price,amount,ref,created,note)
  VALUES (p_id,p_org,p_acct,'order','new',p_qty,p_price,p_qty*p_price,'ref-'||p_id,timestamp '2024-01-01 00:00:00',NULL);
END $$;
CREATE FUNCTION c_transfer(p_a int, p_b int, p_amt numeric) RETURNS void LANGUAGE plpgsql AS $$
DECLARE va numeric; vb numeric;
BEGIN
  SELECT bal INTO va FROM accounts_chk WHERE id=p_a;
  SELECT bal INTO vb FROM accounts_chk WHERE id=p_b;
  IF va IS NULL OR vb IS NULL THEN RAISE EXCEPTION 'no such account' USING ERRCODE='P0002'; END IF;
  IF va < p_amt THEN RAISE EXCEPTION 'insufficient funds: % < %', va, p_amt USING ERRCODE='P0001'; END IF;
  UPDATE accounts_chk SET bal = va - p_amt WHERE id=p_a;
  UPDATE accounts_chk SET bal = vb + p_amt WHERE id=p_b;
END $$;
`

const (
	benchAccounts = 100_000
	benchBlockTxs = 500
)

// BenchmarkProcess reports microseconds a transaction, by stage. One operation
// is one block of 500 transactions; "checked" is a node that has verified the
// signatures when the clients handed the transactions in.
func BenchmarkProcess(b *testing.B) {
	simple := func(s *source, rng *rand.Rand) block.Call {
		return s.call("c_simple", rng.Int64(), 1+rng.IntN(10), 1+rng.IntN(benchAccounts), 1+rng.IntN(100), num("12.50"))
	}
	transfer := func(s *source, rng *rand.Rand) block.Call {
		from := 1 + rng.IntN(benchAccounts)
		return s.call("c_transfer", from, 1+(from+rng.IntN(benchAccounts-2))%benchAccounts, num("0.01"))
	}
	for _, c := range []struct {
		name    string
		call    func(*source, *rand.Rand) block.Call
		checked bool
		workers int
	}{
		{"simple", simple, false, 0},
		{"transfer", transfer, false, 0},
		{"simple/checked", simple, true, 0},
		{"transfer/checked", transfer, true, 0},
		{"simple/one-worker", simple, false, 1},
		{"transfer/one-worker", transfer, false, 1},
	} {
		b.Run(c.name, func(b *testing.B) { benchProcess(b, c.call, c.checked, c.workers) })
	}
}

func benchProcess(b *testing.B, call func(*source, *rand.Rand) block.Call, checked bool, workers int) {
	g := testGenesis(nil)
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	s, n := newSource(b, g), newNode(b, g, workers)
	mustCommit(b, n.process(s.deployBlock(1, benchSchema)))
	for from := 1; from < benchAccounts; from += 10_000 {
		mustCommit(b, n.process(s.block(s.tx(alice, "fill", from, from+9_999))))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	before := n.chain.Metrics()
	for b.Loop() {
		b.StopTimer()
		txs := make([]*block.Tx, benchBlockTxs)
		for i := range txs {
			txs[i] = s.signed(alice, call(s, rng), nil)
		}
		next, err := block.DecodeBlock(s.block(txs...).Encode())
		if err != nil {
			b.Fatal(err)
		}
		if checked {
			for _, tx := range next.Txs {
				if err := n.chain.Authenticate(tx); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.StartTimer()
		if _, err := n.chain.Process(next); err != nil {
			b.Fatal(err)
		}
	}
	m := n.chain.Metrics()
	txs := float64(m.Transactions - before.Transactions)
	for _, stage := range []struct {
		name string
		sum  uint64
	}{
		{"check", m.CheckMicros - before.CheckMicros},
		{"verify", m.VerifyMicros - before.VerifyMicros},
		{"execute", m.ExecuteMicros - before.ExecuteMicros},
		{"decide", m.DecideMicros - before.DecideMicros},
		{"apply", m.ApplyMicros - before.ApplyMicros},
		{"commit", m.CommitMicros - before.CommitMicros},
	} {
		b.ReportMetric(float64(stage.sum)/txs, fmt.Sprintf("%s-us/tx", stage.name))
	}
	b.ReportMetric(float64(m.Committed-before.Committed)/txs, "committed/tx")
}
