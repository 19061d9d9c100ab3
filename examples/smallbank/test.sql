-- tallystick test examples/smallbank/schema.sql examples/smallbank/test.sql

-- as: alice
SELECT create_customer(1, 'Ada', 100, 50);
SELECT create_customer(2, 'Grace', 10, 20);

-- expect: 150
SELECT balance(1);
-- expect: 75.50
SELECT deposit_checking(1, 25.50);
-- expect error: 22023 not negative
SELECT deposit_checking(1, -1);
-- expect: 70
SELECT transact_savings(1, -30);
-- expect error: 23514
SELECT transact_savings(1, -71);
-- expect: 35.50
SELECT send_payment(1, 2, 40);
-- expect error: P0001 insufficient funds
SELECT send_payment(1, 2, 40);
-- expect error: P0002
SELECT send_payment(1, 99, 1);
-- The check is covered: no penalty.
-- expect: -64.50
SELECT write_check(1, 100);
-- This one is not.
-- expect: -75.50
SELECT write_check(1, 10);
-- expect: 54.50
SELECT amalgamate(1, 2);
-- expect error: P0002
SELECT balance(7);

-- Money is where it should be: nothing was lost or made but by deposits, checks and
-- the penalty.
-- expect: 1 | 0 | 0
-- expect: 2 | 10 | 54.50
SELECT c.id, s.balance, k.balance FROM customers c JOIN savings s ON s.customer = c.id JOIN checking k ON k.customer = c.id ORDER BY c.id;
