package contracts_test

import (
	"testing"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
)

// bench calls a function b.N times, each in a transaction of its own that is
// not committed.
func bench(b *testing.B, setup, name string, args ...datum.Datum) {
	d := newDatabase(b)
	if out := d.run(setup); out != "" {
		b.Fatal(out)
	}
	txn := d.store.Begin(mvcc.AsOf(d.height), 1)
	defer txn.Close()
	cat, err := d.engine.Catalog(txn)
	if err != nil {
		b.Fatal(err)
	}
	fn := cat.Funcs("blockchain", name)[0]
	env := d.engine.ContractEnv(txn, 1, cat, &builtin.TxInfo{})
	env.Ctx.Budget = &builtin.Budget{Left: 1 << 62}
	env.Limits = exec.Limits{Nesting: 100, ReadBytes: 1 << 40, WriteBytes: 1 << 40}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.functions.Call(env, fn, args); err != nil {
			b.Fatal(err)
		}
		if err := txn.Reset(mvcc.AsOf(d.height), 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEmpty(b *testing.B) {
	bench(b, `CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$`, "f")
}

// BenchmarkLoop is a loop of 1,000 additions.
func BenchmarkLoop(b *testing.B) {
	bench(b, `CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$
DECLARE s int := 0;
BEGIN
  FOR i IN 1..1000 LOOP s := s + i; END LOOP;
  RETURN s;
END $$`, "f")
}

// BenchmarkNumericLoop is 1,000 rounds of a comparison and a subtraction.
func BenchmarkNumericLoop(b *testing.B) {
	bench(b, `CREATE FUNCTION f(amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE v numeric := 100000;
BEGIN
  FOR i IN 1..1000 LOOP
    IF v < amount THEN RAISE EXCEPTION 'no'; END IF;
    v := v - amount;
  END LOOP;
  RETURN v;
END $$`, "f", numeric("1.5"))
}

func numeric(s string) datum.Datum {
	d, err := datum.Numeric.Parse(s, -1, &datum.ContractFormat)
	if err != nil {
		panic(err)
	}
	return d
}

const transferSetup = `
CREATE TABLE accounts (id text PRIMARY KEY, owner text NOT NULL, balance numeric(12,2) NOT NULL);
CREATE FUNCTION transfer(src text, dst text, amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE v numeric;
BEGIN
  SELECT balance INTO v FROM accounts WHERE id = src;
  IF v < amount THEN RAISE EXCEPTION 'insufficient funds'; END IF;
  UPDATE accounts SET balance = balance - amount WHERE id = src;
  UPDATE accounts SET balance = balance + amount WHERE id = dst;
  RETURN v - amount;
END $$;
INSERT INTO accounts VALUES ('a', 'ann', 100000000), ('b', 'bob', 0);`

func BenchmarkTransfer(b *testing.B) {
	bench(b, transferSetup, "transfer", datum.Str("a"), datum.Str("b"), numeric("1.25"))
}

// BenchmarkEmptyTransaction is what the other figures contain of Txn.Reset.
func BenchmarkEmptyTransaction(b *testing.B) {
	d := newDatabase(b)
	txn := d.store.Begin(mvcc.AsOf(d.height), 1)
	defer txn.Close()
	for b.Loop() {
		if err := txn.Reset(mvcc.AsOf(d.height), 1); err != nil {
			b.Fatal(err)
		}
	}
}
