package chain

import (
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
)

// TestFailedPlanningHasRead: a transaction that fails because a name does not
// exist has read that it does not. When the name comes into being between its
// snapshot and its block it is stale, and its failure, which nobody who had
// looked later would have seen, is no outcome.
func TestFailedPlanningHasRead(t *testing.T) {
	g := testGenesis(func(p *block.Params) { p.Flow = block.FlowExecuteOrderInParallel })
	s, n := newSource(t, g), newNode(t, g, 2)
	mustCommit(t, n.process(s.deployBlock(1, `
		CREATE TABLE present (id int PRIMARY KEY, extra int);
		CREATE TABLE later (id int PRIMARY KEY);
		CREATE FUNCTION of_table() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT id FROM absent WHERE id = 1); END $$;
		CREATE FUNCTION of_statement() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN INSERT INTO absent VALUES (1); RETURN 1; END $$;
		CREATE FUNCTION of_execute() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'INSERT INTO absent VALUES (2)'; RETURN 1; END $$;
		CREATE FUNCTION of_type() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE r later%ROWTYPE; BEGIN RETURN 1; END $$;
		CREATE FUNCTION of_func() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN helper(1); END $$;
		CREATE FUNCTION of_call() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN CALL proc(1); RETURN 1; END $$;
		CREATE FUNCTION of_column() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT added FROM present WHERE id = 1); END $$;
		CREATE FUNCTION handled() RETURNS bigint LANGUAGE plpgsql AS $$
			BEGIN INSERT INTO absent VALUES (3); RETURN 1; EXCEPTION WHEN undefined_table THEN RETURN 2; END $$;
		CREATE FUNCTION unrelated() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT id FROM elsewhere WHERE id = 1); END $$;
	`)))
	mustCommit(t, n.process(s.deployBlock(2, "DROP TABLE later")))
	names := []string{"of_table", "of_statement", "of_execute", "of_func", "of_call", "of_column", "of_type", "handled", "unrelated", "of_name"}
	txs := func() (list []*block.Tx) {
		for _, name := range names {
			list = append(list, s.tx(alice, name))
		}
		return list
	}
	// Twice: what a node has planned before must not matter.
	for range 2 {
		for i, r := range n.process(s.block(txs()...)) {
			if want := map[string]Status{"handled": Committed}[names[i]]; r.Status != want && r.Status != Failed {
				t.Errorf("%s: %s", names[i], r.Status)
			}
		}
	}
	late := txs()
	mustCommit(t, n.process(s.deployBlock(3, `
		CREATE TABLE later (id int PRIMARY KEY);
		CREATE TABLE absent (id int PRIMARY KEY);
		ALTER TABLE present ADD COLUMN added int;
		CREATE FUNCTION helper(p int) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 1::bigint $$;
		CREATE PROCEDURE proc(p int) LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
		CREATE FUNCTION of_name() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
	`)))
	for i, r := range n.process(s.block(late...)) {
		want := Aborted
		if names[i] == "unrelated" {
			want = Failed
		}
		if r.Status != want {
			t.Errorf("%s is %s: %v", names[i], r.Status, r.Err)
		}
	}
}
