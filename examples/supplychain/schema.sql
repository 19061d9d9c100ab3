-- A supply chain: lots of goods are made, shipped, received, split and inspected by
-- organizations that do not trust one another. Every change of hands is a row, and
-- every version of every row stays.

CREATE TABLE lots (
  id       text PRIMARY KEY,
  product  text NOT NULL,
  quantity numeric NOT NULL CHECK (quantity > 0),
  owner    text NOT NULL,           -- organization/user who has it
  status   text NOT NULL CHECK (status IN ('made', 'shipped', 'received', 'recalled')),
  parent   text REFERENCES lots     -- the lot that it was split from
);
CREATE INDEX lots_owner ON lots (owner);
CREATE INDEX lots_parent ON lots (parent);

CREATE TABLE handovers (
  lot      text NOT NULL REFERENCES lots,
  step     int NOT NULL,
  sender   text NOT NULL,
  receiver text NOT NULL,
  sent     timestamptz NOT NULL,
  received timestamptz,
  PRIMARY KEY (lot, step)
);

CREATE TABLE invoices (
  id       int PRIMARY KEY,
  supplier text NOT NULL,
  amount   numeric NOT NULL,
  status   text NOT NULL
);

-- me is whoever signed the transaction.
CREATE FUNCTION me() RETURNS text STABLE LANGUAGE sql AS $$ SELECT tx_org() || '/' || tx_user() $$;

-- lot_of reads a lot that the caller owns.
CREATE FUNCTION lot_of(p_id text) RETURNS lots STABLE LANGUAGE plpgsql AS $$
DECLARE
  v_lot lots;
BEGIN
  SELECT * INTO v_lot FROM lots WHERE id = p_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'lot % does not exist', p_id USING ERRCODE = 'P0002';
  END IF;
  IF v_lot.owner <> me() THEN
    RAISE EXCEPTION 'lot % belongs to %', p_id, v_lot.owner USING ERRCODE = '42501';
  END IF;
  RETURN v_lot;
END $$;

CREATE FUNCTION make_lot(p_id text, p_product text, p_quantity numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO lots VALUES (p_id, p_product, p_quantity, me(), 'made', NULL);
END $$;

CREATE FUNCTION ship_lot(p_id text, p_receiver text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v_lot lots := lot_of(p_id);
  v_step int;
BEGIN
  IF v_lot.status NOT IN ('made', 'received') THEN
    RAISE EXCEPTION 'lot % is %', p_id, v_lot.status USING ERRCODE = '22023';
  END IF;
  SELECT coalesce(max(step), 0) + 1 INTO v_step FROM handovers WHERE lot = p_id;
  INSERT INTO handovers VALUES (p_id, v_step, me(), p_receiver, tx_time(), NULL);
  UPDATE lots SET status = 'shipped' WHERE id = p_id;
  RETURN v_step;
END $$;

CREATE FUNCTION receive_lot(p_id text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_step int;
  v_receiver text;
BEGIN
  SELECT step, receiver INTO v_step, v_receiver FROM handovers WHERE lot = p_id AND received IS NULL ORDER BY lot, step LIMIT 1;
  IF NOT FOUND OR v_receiver <> me() THEN
    RAISE EXCEPTION 'nobody has shipped lot % to %', p_id, me() USING ERRCODE = '42501';
  END IF;
  UPDATE handovers SET received = tx_time() WHERE lot = p_id AND step = v_step;
  UPDATE lots SET owner = me(), status = 'received' WHERE id = p_id;
END $$;

-- split_lot makes a new lot of a part of one.
CREATE FUNCTION split_lot(p_id text, p_new text, p_quantity numeric) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_lot lots := lot_of(p_id);
BEGIN
  IF p_quantity >= v_lot.quantity THEN
    RAISE EXCEPTION 'lot % has %, not more than %', p_id, v_lot.quantity, p_quantity USING ERRCODE = '22023';
  END IF;
  UPDATE lots SET quantity = quantity - p_quantity WHERE id = p_id;
  INSERT INTO lots VALUES (p_new, v_lot.product, p_quantity, me(), v_lot.status, p_id);
END $$;

-- recall_lot marks a lot and everything that came from it.
CREATE FUNCTION recall_lot(p_id text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v_child text;
  v_count int := 1;
BEGIN
  UPDATE lots SET status = 'recalled' WHERE id = p_id;
  FOR v_child IN SELECT id FROM lots WHERE parent = p_id ORDER BY id LOOP
    v_count := v_count + recall_lot(v_child);
  END LOOP;
  RETURN v_count;
END $$;

CREATE FUNCTION write_invoice(p_id int, p_amount numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO invoices VALUES (p_id, me(), p_amount, 'open');
END $$;

CREATE FUNCTION change_invoice(p_id int, p_amount numeric, p_status text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE invoices SET amount = p_amount, status = p_status WHERE id = p_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'invoice % does not exist', p_id USING ERRCODE = 'P0002';
  END IF;
END $$;
