-- TPC-C: the five transactions over its nine tables. Columns that nothing computes
-- with (addresses, phone numbers, padding) are left out; keys and arithmetic are
-- those of the specification.

CREATE TABLE warehouse (w_id int PRIMARY KEY, w_name text NOT NULL, w_tax numeric(4,4) NOT NULL, w_ytd numeric(14,2) NOT NULL);
CREATE TABLE district (
  d_w_id int REFERENCES warehouse, d_id int, d_tax numeric(4,4) NOT NULL, d_ytd numeric(14,2) NOT NULL, d_next_o_id int NOT NULL,
  PRIMARY KEY (d_w_id, d_id)
);
CREATE TABLE customer (
  c_w_id int, c_d_id int, c_id int, c_last text NOT NULL, c_first text NOT NULL, c_credit text NOT NULL,
  c_discount numeric(4,4) NOT NULL, c_balance numeric(14,2) NOT NULL, c_ytd_payment numeric(14,2) NOT NULL,
  c_payment_cnt int NOT NULL, c_delivery_cnt int NOT NULL,
  PRIMARY KEY (c_w_id, c_d_id, c_id), FOREIGN KEY (c_w_id, c_d_id) REFERENCES district
);
CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first, c_id);
CREATE TABLE history (
  h_id uuid PRIMARY KEY, h_c_w_id int NOT NULL, h_c_d_id int NOT NULL, h_c_id int NOT NULL, h_w_id int NOT NULL, h_d_id int NOT NULL,
  h_date timestamptz NOT NULL, h_amount numeric(8,2) NOT NULL
);
CREATE TABLE item (i_id int PRIMARY KEY, i_name text NOT NULL, i_price numeric(7,2) NOT NULL);
CREATE TABLE stock (
  s_w_id int REFERENCES warehouse, s_i_id int REFERENCES item, s_quantity int NOT NULL, s_ytd bigint NOT NULL,
  s_order_cnt int NOT NULL, s_remote_cnt int NOT NULL,
  PRIMARY KEY (s_w_id, s_i_id)
);
CREATE TABLE orders (
  o_w_id int, o_d_id int, o_id int, o_c_id int NOT NULL, o_entry_d timestamptz NOT NULL, o_carrier_id int, o_ol_cnt int NOT NULL,
  PRIMARY KEY (o_w_id, o_d_id, o_id), FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer
);
CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id);
CREATE TABLE new_order (no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
CREATE TABLE order_line (
  ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int NOT NULL, ol_supply_w_id int NOT NULL,
  ol_delivery_d timestamptz, ol_quantity int NOT NULL, ol_amount numeric(8,2) NOT NULL,
  PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number), FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders
);

-- load_items and load_warehouse are the loader; sizes are arguments so that a small
-- database can be had for tests. Everything in it is a function of the arguments.
CREATE FUNCTION load_items(p_from int, p_to int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN p_from..p_to LOOP
    INSERT INTO item VALUES (i, 'item ' || i, 1 + (i * 37) % 100);
  END LOOP;
  RETURN p_to - p_from + 1;
END $$;

CREATE FUNCTION load_warehouse(p_w int, p_districts int, p_customers int, p_items int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_names text[] := ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'];
BEGIN
  INSERT INTO warehouse VALUES (p_w, 'warehouse ' || p_w, 0.1, p_districts * 30000.00);
  FOR s IN 1..p_items LOOP
    INSERT INTO stock VALUES (p_w, s, 10 + (s * 7 + p_w) % 91, 0, 0, 0);
  END LOOP;
  FOR d IN 1..p_districts LOOP
    INSERT INTO district VALUES (p_w, d, 0.05, 30000.00, 1);
    FOR c IN 1..p_customers LOOP
      INSERT INTO customer VALUES (p_w, d, c, v_names[1 + c % 10] || v_names[1 + c / 10 % 10], 'first ' || c,
        CASE WHEN c % 10 = 0 THEN 'BC' ELSE 'GC' END, 0.02, -10.00, 10.00, 1, 0);
    END LOOP;
  END LOOP;
END $$;

-- New-Order (2.4). The lines come as three arrays; an unknown item rolls all of it
-- back. The result is the total.
CREATE FUNCTION new_order(p_w int, p_d int, p_c int, p_items int[], p_supply int[], p_quantity int[]) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  v_w_tax numeric;
  v_d_tax numeric;
  v_discount numeric;
  v_o int;
  v_price numeric;
  v_stock int;
  v_total numeric := 0;
BEGIN
  SELECT w_tax INTO STRICT v_w_tax FROM warehouse WHERE w_id = p_w;
  UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w AND d_id = p_d RETURNING d_tax, d_next_o_id - 1 INTO STRICT v_d_tax, v_o;
  SELECT c_discount INTO STRICT v_discount FROM customer WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = p_c;
  INSERT INTO orders VALUES (p_w, p_d, v_o, p_c, tx_time(), NULL, array_length(p_items, 1));
  INSERT INTO new_order VALUES (p_w, p_d, v_o);
  FOR n IN 1..array_length(p_items, 1) LOOP
    SELECT i_price INTO v_price FROM item WHERE i_id = p_items[n];
    IF NOT FOUND THEN
      RAISE EXCEPTION 'item number is not valid: %', p_items[n] USING ERRCODE = 'P0002';
    END IF;
    SELECT s_quantity INTO STRICT v_stock FROM stock WHERE s_w_id = p_supply[n] AND s_i_id = p_items[n];
    v_stock := v_stock - p_quantity[n];
    IF v_stock < 10 THEN
      v_stock := v_stock + 91;
    END IF;
    UPDATE stock SET s_quantity = v_stock, s_ytd = s_ytd + p_quantity[n], s_order_cnt = s_order_cnt + 1,
      s_remote_cnt = s_remote_cnt + CASE WHEN p_supply[n] = p_w THEN 0 ELSE 1 END
      WHERE s_w_id = p_supply[n] AND s_i_id = p_items[n];
    INSERT INTO order_line VALUES (p_w, p_d, v_o, n, p_items[n], p_supply[n], NULL, p_quantity[n], p_quantity[n] * v_price);
    v_total := v_total + p_quantity[n] * v_price;
  END LOOP;
  RETURN round(v_total * (1 - v_discount) * (1 + v_w_tax + v_d_tax), 2);
END $$;

-- customer_named is the middle one of those with a last name, by first name.
CREATE FUNCTION customer_named(p_w int, p_d int, p_last text) RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
  v_ids int[];
BEGIN
  SELECT array_agg(c_id ORDER BY c_first, c_id) INTO v_ids FROM customer WHERE c_w_id = p_w AND c_d_id = p_d AND c_last = p_last;
  IF v_ids IS NULL THEN
    RAISE EXCEPTION 'no customer is called %', p_last USING ERRCODE = 'P0002';
  END IF;
  RETURN v_ids[(array_length(v_ids, 1) + 1) / 2];
END $$;

-- Payment (2.5) by number, or by last name if the number is null.
CREATE FUNCTION payment(p_w int, p_d int, p_c_w int, p_c_d int, p_c int, p_last text, p_amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  v_c int := p_c;
  v_balance numeric;
BEGIN
  IF v_c IS NULL THEN
    v_c := customer_named(p_c_w, p_c_d, p_last);
  END IF;
  UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w;
  UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w AND d_id = p_d;
  UPDATE customer SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount, c_payment_cnt = c_payment_cnt + 1
    WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c RETURNING c_balance INTO STRICT v_balance;
  INSERT INTO history VALUES (tx_uuid(), p_c_w, p_c_d, v_c, p_w, p_d, tx_time(), p_amount);
  RETURN v_balance;
END $$;

-- Order-Status (2.6): the last order of a customer; a query, not a transaction.
CREATE FUNCTION order_status(p_w int, p_d int, p_c int) RETURNS TABLE (o_id int, carrier int, item int, quantity int, amount numeric)
STABLE LANGUAGE plpgsql AS $$
DECLARE
  v_o int;
BEGIN
  SELECT max(o.o_id) INTO v_o FROM orders o WHERE o.o_w_id = p_w AND o.o_d_id = p_d AND o.o_c_id = p_c;
  RETURN QUERY
    SELECT o.o_id, o.o_carrier_id, l.ol_i_id, l.ol_quantity, l.ol_amount::numeric
    FROM orders o JOIN order_line l ON l.ol_w_id = o.o_w_id AND l.ol_d_id = o.o_d_id AND l.ol_o_id = o.o_id
    WHERE o.o_w_id = p_w AND o.o_d_id = p_d AND o.o_id = v_o ORDER BY l.ol_number;
END $$;

-- Delivery (2.7): the oldest new order of every district. The result is how many.
CREATE FUNCTION delivery(p_w int, p_carrier int, p_districts int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v_o int;
  v_c int;
  v_sum numeric;
  v_count int := 0;
BEGIN
  FOR d IN 1..p_districts LOOP
    SELECT min(no_o_id) INTO v_o FROM new_order WHERE no_w_id = p_w AND no_d_id = d;
    CONTINUE WHEN v_o IS NULL;
    DELETE FROM new_order WHERE no_w_id = p_w AND no_d_id = d AND no_o_id = v_o;
    UPDATE orders SET o_carrier_id = p_carrier WHERE o_w_id = p_w AND o_d_id = d AND o_id = v_o RETURNING o_c_id INTO STRICT v_c;
    UPDATE order_line SET ol_delivery_d = tx_time() WHERE ol_w_id = p_w AND ol_d_id = d AND ol_o_id = v_o;
    SELECT sum(ol_amount) INTO v_sum FROM order_line WHERE ol_w_id = p_w AND ol_d_id = d AND ol_o_id = v_o;
    UPDATE customer SET c_balance = c_balance + v_sum, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = p_w AND c_d_id = d AND c_id = v_c;
    v_count := v_count + 1;
  END LOOP;
  RETURN v_count;
END $$;

-- Stock-Level (2.8): items of the last 20 orders of a district that run low.
CREATE FUNCTION stock_level(p_w int, p_d int, p_threshold int) RETURNS bigint STABLE LANGUAGE plpgsql AS $$
DECLARE
  v_next int;
  v_count bigint;
BEGIN
  SELECT d_next_o_id INTO STRICT v_next FROM district WHERE d_w_id = p_w AND d_id = p_d;
  SELECT count(DISTINCT s_i_id) INTO v_count FROM order_line JOIN stock ON s_w_id = p_w AND s_i_id = ol_i_id
    WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id >= v_next - 20 AND ol_o_id < v_next AND s_quantity < p_threshold;
  RETURN v_count;
END $$;
