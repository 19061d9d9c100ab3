CREATE TABLE simple_t (id bigint PRIMARY KEY, org int NOT NULL, acct int NOT NULL, kind text NOT NULL, status text NOT NULL,
  qty int NOT NULL, price numeric(12,2) NOT NULL, amount numeric(14,2) NOT NULL, ref text, created timestamp NOT NULL, note text);
CREATE FUNCTION c_simple(p_id bigint, p_org int, p_acct int, p_qty int, p_price numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO simple_t(id, org, acct, kind, status, qty, price, amount, ref, created, note)
  VALUES (p_id, p_org, p_acct, 'order', 'new', p_qty, p_price, p_qty * p_price, 'ref-' || p_id, timestamp '2024-01-01 00:00:00', NULL);
END $$;
