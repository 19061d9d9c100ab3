-- SmallBank: customers with a checking and a savings account, and the benchmark's
-- six transactions. A read of an account that does not exist is an error, as is a
-- balance that a transaction may not leave behind.

CREATE TABLE customers (
  id   bigint PRIMARY KEY,
  name text NOT NULL
);
CREATE TABLE savings (
  customer bigint PRIMARY KEY REFERENCES customers,
  balance  numeric NOT NULL CHECK (balance >= 0)
);
CREATE TABLE checking (
  customer bigint PRIMARY KEY REFERENCES customers,
  balance  numeric NOT NULL
);

CREATE FUNCTION create_customer(p_id bigint, p_name text, p_savings numeric, p_checking numeric) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO customers VALUES (p_id, p_name);
  INSERT INTO savings VALUES (p_id, p_savings);
  INSERT INTO checking VALUES (p_id, p_checking);
END $$;

-- Balance: what a customer has in both accounts. As a transaction it is part of the
-- serial order.
CREATE FUNCTION balance(p_id bigint) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
  v_savings numeric;
  v_checking numeric;
BEGIN
  SELECT s.balance INTO STRICT v_savings FROM savings s WHERE s.customer = p_id;
  SELECT c.balance INTO STRICT v_checking FROM checking c WHERE c.customer = p_id;
  RETURN v_savings + v_checking;
END $$;

-- DepositChecking adds to the checking account.
CREATE FUNCTION deposit_checking(p_id bigint, p_amount numeric) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
  v_balance numeric;
BEGIN
  IF p_amount < 0 THEN
    RAISE EXCEPTION 'a deposit is not negative: %', p_amount USING ERRCODE = '22023';
  END IF;
  UPDATE checking c SET balance = c.balance + p_amount WHERE c.customer = p_id RETURNING c.balance INTO STRICT v_balance;
  RETURN v_balance;
END $$;

-- TransactSavings adds to the savings account, or takes from it what is there.
CREATE FUNCTION transact_savings(p_id bigint, p_amount numeric) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
  v_balance numeric;
BEGIN
  UPDATE savings s SET balance = s.balance + p_amount WHERE s.customer = p_id RETURNING s.balance INTO STRICT v_balance;
  RETURN v_balance;
END $$;

-- Amalgamate moves everything that the first customer has to the checking account of
-- the second.
CREATE FUNCTION amalgamate(p_from bigint, p_to bigint) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
  v_savings numeric;
  v_checking numeric;
  v_balance numeric;
BEGIN
  SELECT s.balance INTO STRICT v_savings FROM savings s WHERE s.customer = p_from;
  SELECT c.balance INTO STRICT v_checking FROM checking c WHERE c.customer = p_from;
  UPDATE savings s SET balance = 0 WHERE s.customer = p_from;
  UPDATE checking c SET balance = 0 WHERE c.customer = p_from;
  UPDATE checking c SET balance = c.balance + v_savings + v_checking WHERE c.customer = p_to RETURNING c.balance INTO STRICT v_balance;
  RETURN v_balance;
END $$;

-- WriteCheck takes from the checking account; a customer who does not have as much
-- in both together pays a penalty of 1.
CREATE FUNCTION write_check(p_id bigint, p_amount numeric) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
  v_savings numeric;
  v_checking numeric;
  v_taken numeric := p_amount;
BEGIN
  SELECT s.balance INTO STRICT v_savings FROM savings s WHERE s.customer = p_id;
  SELECT c.balance INTO STRICT v_checking FROM checking c WHERE c.customer = p_id;
  IF v_savings + v_checking < p_amount THEN
    v_taken := p_amount + 1;
  END IF;
  UPDATE checking c SET balance = c.balance - v_taken WHERE c.customer = p_id;
  RETURN v_checking - v_taken;
END $$;

-- SendPayment moves an amount between checking accounts.
CREATE FUNCTION send_payment(p_from bigint, p_to bigint, p_amount numeric) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
  v_checking numeric;
BEGIN
  SELECT c.balance INTO STRICT v_checking FROM checking c WHERE c.customer = p_from;
  IF v_checking < p_amount THEN
    RAISE EXCEPTION 'insufficient funds: % < %', v_checking, p_amount USING ERRCODE = 'P0001';
  END IF;
  UPDATE checking c SET balance = c.balance - p_amount WHERE c.customer = p_from;
  UPDATE checking c SET balance = c.balance + p_amount WHERE c.customer = p_to;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'customer % does not exist', p_to USING ERRCODE = 'P0002';
  END IF;
  RETURN v_checking - p_amount;
END $$;
