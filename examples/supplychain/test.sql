-- tallystick test examples/supplychain/schema.sql examples/supplychain/test.sql

-- as: alice
SELECT make_lot('L1', 'coffee', 100);
SELECT split_lot('L1', 'L1a', 40);
SELECT split_lot('L1a', 'L1b', 10);
-- expect error: 22023
SELECT split_lot('L1', 'L1c', 1000);
-- expect: 1
SELECT ship_lot('L1a', 'dev/bob');
-- expect error: 22023 is shipped
SELECT ship_lot('L1a', 'dev/bob');
-- expect error: 42501
SELECT receive_lot('L1a');

-- as: bob
SELECT receive_lot('L1a');
-- expect error: 42501 belongs to dev/alice
SELECT ship_lot('L1', 'dev/bob');
-- expect: 2
SELECT ship_lot('L1a', 'dev/alice');
-- as: alice
SELECT receive_lot('L1a');

-- expect: L1 | 60 | dev/alice | made | NULL
-- expect: L1a | 30 | dev/alice | received | L1
-- expect: L1b | 10 | dev/alice | made | L1a
SELECT id, quantity, owner, status, parent FROM lots ORDER BY id;

-- expect: 3
SELECT recall_lot('L1');
-- expect: recalled | 3
SELECT status, count(*) FROM lots GROUP BY status;

-- Provenance: through whose hands did lot L1a go? Every version of its row is
-- there, with the transaction that made it.
-- expect: dev/alice | made | alice
-- expect: dev/alice | made | alice
-- expect: dev/alice | shipped | alice
-- expect: dev/bob | received | bob
-- expect: dev/bob | shipped | bob
-- expect: dev/alice | received | alice
-- expect: dev/alice | recalled | alice
SELECT v.owner, v.status, l.username FROM provenance.lots v JOIN pgledger l ON l.txid = v.xmin WHERE v.id = 'L1a' ORDER BY v.xmin;

SELECT write_invoice(1, 100);
SELECT write_invoice(2, 50);
SELECT change_invoice(1, 120, 'open');
-- as: bob
SELECT change_invoice(1, 110, 'disputed');
SELECT change_invoice(2, 50, 'paid');

-- The first query of the paper: all invoices that a supplier updated between two
-- blocks. A version that was replaced names in xmax the transaction that did it.
-- expect: 1 | 100
SELECT DISTINCT i.id, i.amount FROM provenance.invoices i JOIN pgledger l ON i.xmax = l.txid
WHERE l.username = 'alice' AND l.block BETWEEN 1 AND 300 ORDER BY i.id;

-- The second: all versions of invoice 1 that either of two users replaced within
-- the last 24 hours.
-- expect: 100 | open | alice
-- expect: 120 | open | bob
SELECT i.amount, i.status, l.username FROM provenance.invoices i JOIN pgledger l ON i.xmax = l.txid
WHERE i.id = 1 AND l.username IN ('alice', 'bob') AND l.signed_at > now() - interval '24 hours' ORDER BY i.xmin;
