# The tables of every file here.
schema
create table branch(id int primary key, city text);
create table account(id int primary key, owner text not null, balance numeric check (balance >= -1000),
  branch int references branch, opened date, unique(owner));
create index on account(branch, balance desc);
create table entry(account int references account on delete cascade on update cascade, n int, amount numeric, note text,
  primary key(account,n));
----

exec
INSERT INTO branch VALUES (1, 'Oslo'), (2, 'Rome'), (3, NULL), (4, 'Lima')
----
4

exec
INSERT INTO account VALUES (1, 'ann', 100.50, 1, '2020-01-01'), (2, 'bob', 20, 2, '2020-02-29'), (3, 'cyd', NULL, 1, NULL),
 (4, 'dan', -5.25, NULL, '2021-12-31'), (5, 'eve', 20.00, 2, '2019-06-15'), (6, 'fay', 300, 3, '2022-03-04')
----
6

exec
INSERT INTO entry SELECT a.id, g, a.id * 10 + g, CASE WHEN g % 2 = 0 THEN 'even' END FROM account a, generate_series(1, 3) g WHERE a.id < 5
----
12

query
SELECT * FROM account WHERE id = 2
----
2|bob|20|2|2020-02-29

query
SELECT owner, balance FROM account WHERE id IN (5, 1, 9, 5) ORDER BY id DESC
----
eve|20.00
ann|100.50

query
SELECT id FROM account WHERE branch = 2 AND balance >= 20 ORDER BY id
----
2
5

query
SELECT id, balance FROM account WHERE branch = 1 ORDER BY balance DESC
----
3|NULL
1|100.50

query
SELECT id FROM account WHERE branch IS NULL OR balance IS NULL ORDER BY 1
----
3
4

query
SELECT id FROM account WHERE id BETWEEN 2 AND 4 AND owner <> 'cyd' ORDER BY id
----
2
4

query
SELECT a.owner, b.city FROM account a JOIN branch b ON b.id = a.branch ORDER BY a.id
----
ann|Oslo
bob|Rome
cyd|Oslo
eve|Rome
fay|NULL

query
SELECT a.owner, b.city FROM account a LEFT JOIN branch b ON b.id = a.branch AND b.city LIKE '%o%' ORDER BY a.id
----
ann|Oslo
bob|Rome
cyd|Oslo
dan|NULL
eve|Rome
fay|NULL

query
SELECT a.owner, b.city FROM account a RIGHT JOIN branch b ON b.id = a.branch ORDER BY b.id, a.id
----
ann|Oslo
cyd|Oslo
bob|Rome
eve|Rome
fay|NULL
NULL|Lima

query
SELECT a.owner, b.city FROM account a FULL JOIN branch b ON b.id = a.branch ORDER BY a.id, b.id
----
ann|Oslo
bob|Rome
cyd|Oslo
dan|NULL
eve|Rome
fay|NULL
NULL|Lima

query
SELECT a.id, b.id FROM account a JOIN account b ON a.balance < b.balance ORDER BY a.id, b.id
----
1|6
2|1
2|6
4|1
4|2
4|5
4|6
5|1
5|6

query
SELECT a.id, e.n, e.amount FROM account a CROSS JOIN LATERAL (SELECT * FROM entry e WHERE e.account = a.id ORDER BY n DESC LIMIT 1) e ORDER BY a.id
----
1|3|13
2|3|23
3|3|33
4|3|43

query
SELECT branch, count(*), count(balance), sum(balance), avg(balance), min(owner), max(opened) FROM account GROUP BY branch ORDER BY branch
----
1|2|1|100.50|100.5000000000000000|ann|2020-01-01
2|2|2|40.00|20.0000000000000000|bob|2020-02-29
3|1|1|300|300.0000000000000000|fay|2022-03-04
NULL|1|1|-5.25|-5.2500000000000000|dan|2021-12-31

query
SELECT branch, sum(balance) FROM account GROUP BY branch HAVING count(*) > 1 ORDER BY sum(balance) DESC LIMIT 1
----
1|100.50

query
SELECT count(*), sum(balance), max(id) FROM account WHERE id > 100
----
0|NULL|NULL

query
SELECT count(DISTINCT balance), string_agg(owner, ',' ORDER BY owner DESC), array_agg(DISTINCT branch) FROM account
----
4|fay,eve,dan,cyd,bob,ann|{1,2,3,NULL}

query
SELECT count(*) FILTER (WHERE balance > 50), sum(balance) FILTER (WHERE branch = 2) FROM account
----
2|40.00

query
SELECT DISTINCT balance FROM account WHERE branch = 2 ORDER BY 1
----
20

query
SELECT DISTINCT ON (branch) branch, owner FROM account ORDER BY branch, balance DESC NULLS LAST
----
1|ann
2|bob
3|fay
NULL|dan

query
SELECT id FROM account ORDER BY balance NULLS FIRST, id DESC
----
3
4
5
2
1
6

query
SELECT id FROM account ORDER BY balance DESC OFFSET 1 LIMIT 3
----
6
1
2

query
SELECT id, balance FROM account WHERE balance IS NOT NULL ORDER BY balance FETCH FIRST 2 ROWS WITH TIES
----
4|-5.25
2|20
5|20.00

query
SELECT owner FROM account WHERE branch IN (SELECT id FROM branch WHERE city IS NOT NULL) ORDER BY 1
----
ann
bob
cyd
eve

query
SELECT id FROM branch b WHERE NOT EXISTS (SELECT 1 FROM account a WHERE a.branch = b.id) ORDER BY 1
----
4

query
SELECT id FROM branch WHERE id NOT IN (SELECT branch FROM account) ORDER BY 1
----


query
SELECT id, (SELECT sum(amount) FROM entry e WHERE e.account = a.id) FROM account a ORDER BY id
----
1|36
2|66
3|96
4|126
5|NULL
6|NULL

query
SELECT (SELECT id FROM branch)
----
ERROR 21000: more than one row returned by a subquery used as an expression

query
SELECT id FROM account WHERE balance >= ALL (SELECT balance FROM account WHERE branch = 2) ORDER BY id
----
1
2
5
6

query
SELECT ARRAY(SELECT id FROM account WHERE branch = 1 ORDER BY id), ARRAY[1, 2] || 3, (ARRAY[10, 20, 30])[2:]
----
{1,3}|{1,2,3}|{20,30}

query
SELECT id FROM account WHERE branch = 1 UNION SELECT branch FROM account WHERE id < 3 ORDER BY 1
----
1
2
3

query
SELECT branch FROM account UNION ALL SELECT id FROM branch ORDER BY 1
----
1
1
1
2
2
2
3
3
4
NULL

query
SELECT branch FROM account INTERSECT SELECT id FROM branch ORDER BY 1
----
1
2
3

query
SELECT branch FROM account INTERSECT ALL SELECT branch FROM account WHERE id > 1 ORDER BY 1
----
1
2
2
3
NULL

query
SELECT branch FROM account EXCEPT SELECT id FROM branch WHERE id > 1 ORDER BY 1
----
1
NULL

query
SELECT branch FROM account EXCEPT ALL SELECT id FROM branch ORDER BY 1
----
1
2
NULL

query
WITH rich AS (SELECT * FROM account WHERE balance > 50) SELECT r.owner, s.owner FROM rich r JOIN rich s ON r.id < s.id
----
ann|fay

query
WITH RECURSIVE t(n, f) AS (SELECT 1, 1::bigint UNION ALL SELECT n + 1, f * (n + 1) FROM t WHERE n < 10) SELECT * FROM t WHERE n > 7
----
8|40320
9|362880
10|3628800

query
WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT (n * 3) % 10 FROM t) SELECT n FROM t ORDER BY n
----
1
3
7
9

query
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t LIMIT 3
----
1
2
3

query
SELECT id, CASE branch WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE coalesce(branch::text, 'none') END FROM account ORDER BY id
----
1|one
2|two
3|one
4|none
5|two
6|3

query
SELECT greatest(id, branch), least(id, branch, 2), nullif(id, branch), id IS DISTINCT FROM branch FROM account ORDER BY id
----
1|1|NULL|f
2|2|NULL|f
3|1|3|t
4|2|4|t
5|2|5|t
6|2|6|t

query
SELECT (id, branch) = (2, 2), (id, branch) < (3, 1), ROW(id, owner) FROM account WHERE id < 4 ORDER BY id
----
f|t|(1,ann)
t|t|(2,bob)
f|f|(3,cyd)

query
SELECT generate_series(1, branch), owner FROM account WHERE id IN (1, 5) ORDER BY id, 1
----
1|ann
1|eve
2|eve

query
SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS g(v, o) ORDER BY o DESC
----
3|3
2|2
1|1

query
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(x, y) JOIN unnest(ARRAY[2, 3]) u ON u = x
----
2|NULL|2

query
SELECT id FROM account WHERE owner = ANY (ARRAY['bob', 'fay', NULL]) ORDER BY 1
----
2
6

query
SELECT id FROM account WHERE NOT (balance > 50) ORDER BY 1
----
2
4
5

query
SELECT owner || '-' || coalesce(balance::text, '?'), opened + 1, length(owner) FROM account ORDER BY id
----
ann-100.50|2020-01-02|3
bob-20|2020-03-01|3
cyd-?|NULL|3
dan--5.25|2022-01-01|3
eve-20.00|2019-06-16|3
fay-300|2022-03-05|3

query
SELECT branch, avg(n) FROM account JOIN entry ON entry.account = account.id GROUP BY branch ORDER BY 1 NULLS FIRST
----
NULL|2.0000000000000000
1|2.0000000000000000
2|2.0000000000000000

query
SELECT 1 / (id - 1) FROM account WHERE id = 1
----
ERROR 22012: division by zero

query
SELECT 1 WHERE NULL
----


query
SELECT sum(x) FROM (SELECT balance x FROM account UNION ALL SELECT amount FROM entry) s
----
759.25

query
SELECT id FROM account LIMIT -1
----
ERROR 2201W: LIMIT must not be negative

query
SELECT a.branch, b.n FROM (SELECT branch, count(*) c FROM account GROUP BY branch) a JOIN (SELECT account % 3 k, max(n) n FROM entry GROUP BY 1) b ON a.branch = b.k ORDER BY 1, 2
----
1|3
2|3
