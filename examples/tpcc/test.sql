-- tallystick test examples/tpcc/schema.sql examples/tpcc/test.sql

-- as: alice
-- expect: 20
SELECT load_items(1, 20);
SELECT load_warehouse(1, 2, 30, 20);
SELECT load_warehouse(2, 2, 30, 20);

-- Two lines, one of them from the other warehouse: (3 * 38 + 2 * 75) * 0.98 * 1.15.
-- expect: 297.53
SELECT new_order(1, 1, 5, ARRAY[1, 2], ARRAY[1, 2], ARRAY[3, 2]);
-- (5 * 12 + 5 * 49 + 86) * 0.98 * 1.15.
-- expect: 440.66
SELECT new_order(1, 1, 6, ARRAY[3, 4, 5], ARRAY[1, 1, 1], ARRAY[5, 5, 1]);
SELECT new_order(1, 2, 7, ARRAY[10], ARRAY[1], ARRAY[9]);
-- The unknown item of 2.4.1.5: nothing of the order stays.
-- expect error: P0002 item number is not valid
SELECT new_order(1, 1, 5, ARRAY[1, 99999], ARRAY[1, 1], ARRAY[1, 1]);

-- expect: -110.00
SELECT payment(1, 1, 1, 1, 5, NULL, 100);
-- Three customers of the district have this name; the middle one pays, by first name.
-- expect: -60.00
SELECT payment(1, 1, 1, 1, NULL, 'OUGHTBAR', 50);
-- expect error: P0002 no customer is called
SELECT payment(1, 1, 1, 1, NULL, 'NOBODY', 50);

-- expect: 1 | NULL | 1 | 3 | 114.00
-- expect: 1 | NULL | 2 | 2 | 150.00
SELECT * FROM order_status(1, 1, 5);
-- expect: 2
SELECT delivery(1, 7, 2);
-- expect: 1
SELECT delivery(1, 7, 2);
-- expect: 0
SELECT delivery(1, 7, 2);
-- expect: 1 | 7 | 1 | 3 | 114.00
-- expect: 1 | 7 | 2 | 2 | 150.00
SELECT * FROM order_status(1, 1, 5);
-- expect: 154.00
SELECT c_balance FROM customer WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 5;
-- expect: 5
SELECT stock_level(1, 1, 1000);

-- Consistency condition 1 (3.3.2.1): w_ytd is the sum of d_ytd.
-- expect: no rows
SELECT w_id FROM warehouse WHERE w_ytd <> (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id);
-- Conditions 2 and 3: d_next_o_id - 1 is the largest order number, and new orders are
-- numbered without gaps.
-- expect: no rows
SELECT d_w_id, d_id FROM district WHERE d_next_o_id - 1 <> coalesce((SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id), 0);
-- expect: no rows
SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*);
-- Condition 4: o_ol_cnt counts the order lines.
-- expect: no rows
SELECT o_w_id, o_d_id FROM orders GROUP BY o_w_id, o_d_id
HAVING sum(o_ol_cnt) <> (SELECT count(*) FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id);
-- Condition 5: an order has no carrier as long as it is new.
-- expect: no rows
SELECT o_w_id, o_d_id, o_id FROM orders
WHERE (o_carrier_id IS NULL) <> EXISTS (SELECT 1 FROM new_order WHERE no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id);
-- Condition 8: w_ytd is what was paid, beside what was loaded.
-- expect: 1 | 150.00
-- expect: 2 | 0.00
SELECT w_id, w_ytd - 60000.00 FROM warehouse ORDER BY w_id;
-- expect: 2 | 150.00
SELECT count(*), sum(h_amount) FROM history WHERE h_w_id = 1;
