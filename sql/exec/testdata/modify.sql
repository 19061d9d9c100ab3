exec
INSERT INTO branch VALUES (1, 'Oslo'), (2, 'Rome'), (3, NULL)
----
3

exec
INSERT INTO account (id, owner, branch) VALUES (1, 'ann', 1), (2, 'bob', 2)
----
2

exec
INSERT INTO account VALUES (3, 'cyd', 10, 9)
----
ERROR 23503: insert or update on table "account" violates foreign key constraint "account_branch_fkey"
DETAIL: Key (branch)=(9) is not present in table "branch".

exec
INSERT INTO account VALUES (3, NULL, 10, 1)
----
ERROR 23502: null value in column "owner" of relation "account" violates not-null constraint
DETAIL: Failing row contains (3, null, 10, 1, null).

exec
INSERT INTO account VALUES (3, 'cyd', -2000, 1)
----
ERROR 23514: new row for relation "account" violates check constraint "account_balance_check"
DETAIL: Failing row contains (3, cyd, -2000, 1, null).

exec
INSERT INTO account VALUES (1, 'cyd')
----
ERROR 23505: duplicate key value violates unique constraint "account_pkey"
DETAIL: Key (id)=(1) already exists.

exec
INSERT INTO account VALUES (3, 'bob')
----
ERROR 23505: duplicate key value violates unique constraint "account_owner_key"
DETAIL: Key (owner)=(bob) already exists.

exec
INSERT INTO account VALUES (3, 'cyd', 1.5, 1, '2020-01-01'), (4, 'cyd')
----
ERROR 42601: VALUES lists must all be the same length

exec
INSERT INTO account VALUES (3, 'cyd', 1.5, 1, '2020-01-01') RETURNING id + 1, owner, opened
----
4|cyd|2020-01-01
1

exec
UPDATE account SET balance = coalesce(balance, 0) + 10 WHERE branch = 1 RETURNING id, balance
----
1|10
3|11.5
2

exec
UPDATE account SET id = id + 1 WHERE id = 1
----
ERROR 23505: duplicate key value violates unique constraint "account_pkey"
DETAIL: Key (id)=(2) already exists.

exec
UPDATE account SET id = id + 10 WHERE id > 1
----
2

query
SELECT * FROM account ORDER BY id
----
1|ann|10|1|NULL
12|bob|NULL|2|NULL
13|cyd|11.5|1|2020-01-01

exec
UPDATE account SET owner = 'ann' WHERE id = 12
----
ERROR 23505: duplicate key value violates unique constraint "account_owner_key"
DETAIL: Key (owner)=(ann) already exists.

exec
UPDATE account a SET owner = a.owner || '/' || b.city FROM branch b WHERE b.id = a.branch AND a.id > 1
----
2

exec
UPDATE account SET (balance, branch) = (7, NULL) WHERE id = 12
----
1

exec
INSERT INTO account VALUES (1, 'zed', 1), (20, 'ann', 1), (21, 'gus', 1) ON CONFLICT DO NOTHING
----
1

exec
INSERT INTO account VALUES (1, 'zed', 5), (22, 'hal', 5) ON CONFLICT (id) DO UPDATE SET balance = account.balance + excluded.balance RETURNING id, owner, balance
----
1|ann|15
22|hal|5
2

exec
INSERT INTO account VALUES (99, 'hal', 5) ON CONFLICT (owner) DO UPDATE SET id = excluded.id WHERE account.balance < 5
----
0

exec
INSERT INTO account VALUES (30, 'ida', 5), (30, 'joe', 5) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner
----
ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time

query
SELECT id, owner, balance, branch FROM account ORDER BY id
----
1|ann|15|1
12|bob/Rome|7|NULL
13|cyd/Oslo|11.5|1
21|gus|1|NULL
22|hal|5|NULL

exec
INSERT INTO entry SELECT id, 1, balance FROM account
----
5

exec
DELETE FROM branch WHERE id = 1
----
ERROR 23503: update or delete on table "branch" violates foreign key constraint "account_branch_fkey" on table "account"
DETAIL: Key (id)=(1) is still referenced from table "account".

exec
UPDATE branch SET id = id + 10 WHERE id = 1
----
ERROR 23503: update or delete on table "branch" violates foreign key constraint "account_branch_fkey" on table "account"
DETAIL: Key (id)=(1) is still referenced from table "account".

exec
DELETE FROM branch WHERE id = 3
----
1

exec
UPDATE account SET id = 100 WHERE id = 1
----
1

exec
DELETE FROM account WHERE id = 12 RETURNING *
----
12|bob/Rome|7|NULL|NULL
1

query
SELECT * FROM entry ORDER BY account, n
----
13|1|11.5|NULL
21|1|1|NULL
22|1|5|NULL
100|1|15|NULL

exec
WITH gone AS (DELETE FROM account WHERE id > 20 RETURNING *) INSERT INTO branch SELECT id, owner FROM gone
----
3

query
WITH new AS (INSERT INTO branch VALUES (50, 'Nice') RETURNING id) SELECT new.id, (SELECT count(*) FROM branch) FROM new
----
50|5

query
SELECT count(*) FROM branch
----
6

exec
DELETE FROM account USING branch b, branch c WHERE account.branch = b.id AND b.id <= c.id
----
1

query
SELECT id FROM account ORDER BY id
----


exec
DELETE FROM account
----
0

query
SELECT * FROM entry
----

