CREATE TABLE sb_savings (id int PRIMARY KEY, bal numeric(14,2) NOT NULL);
CREATE TABLE sb_checking (id int PRIMARY KEY, bal numeric(14,2) NOT NULL);
CREATE FUNCTION load_bank(p_from int, p_to int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO sb_savings SELECT g, 10000 FROM generate_series(p_from, p_to) g;
  INSERT INTO sb_checking SELECT g, 10000 FROM generate_series(p_from, p_to) g;
END $$;
-- A balance check that is recorded as a transaction, as the benchmark counts it.
CREATE FUNCTION sb_balance(p_id int) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  s numeric;
  c numeric;
BEGIN
  SELECT bal INTO STRICT s FROM sb_savings WHERE id = p_id;
  SELECT bal INTO STRICT c FROM sb_checking WHERE id = p_id;
  RETURN s + c;
END $$;
CREATE FUNCTION sb_deposit_checking(p_id int, p_amt numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE sb_checking SET bal = bal + p_amt WHERE id = p_id;
END $$;
CREATE FUNCTION sb_transact_savings(p_id int, p_amt numeric) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  s numeric;
BEGIN
  SELECT bal INTO STRICT s FROM sb_savings WHERE id = p_id;
  IF s + p_amt < 0 THEN
    RAISE EXCEPTION 'insufficient savings' USING ERRCODE = 'P0001';
  END IF;
  UPDATE sb_savings SET bal = s + p_amt WHERE id = p_id;
END $$;
CREATE FUNCTION sb_amalgamate(p_a int, p_b int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  s numeric;
  c numeric;
BEGIN
  SELECT bal INTO STRICT s FROM sb_savings WHERE id = p_a;
  SELECT bal INTO STRICT c FROM sb_checking WHERE id = p_a;
  UPDATE sb_savings SET bal = 0 WHERE id = p_a;
  UPDATE sb_checking SET bal = 0 WHERE id = p_a;
  UPDATE sb_checking SET bal = bal + s + c WHERE id = p_b;
END $$;
CREATE FUNCTION sb_write_check(p_id int, p_amt numeric) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  s numeric;
  c numeric;
BEGIN
  SELECT bal INTO STRICT s FROM sb_savings WHERE id = p_id;
  SELECT bal INTO STRICT c FROM sb_checking WHERE id = p_id;
  IF s + c < p_amt THEN
    UPDATE sb_checking SET bal = c - p_amt - 1 WHERE id = p_id;
  ELSE
    UPDATE sb_checking SET bal = c - p_amt WHERE id = p_id;
  END IF;
END $$;
CREATE FUNCTION sb_send_payment(p_a int, p_b int, p_amt numeric) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  c numeric;
BEGIN
  SELECT bal INTO STRICT c FROM sb_checking WHERE id = p_a;
  IF c < p_amt THEN
    RAISE EXCEPTION 'insufficient funds' USING ERRCODE = 'P0001';
  END IF;
  UPDATE sb_checking SET bal = bal - p_amt WHERE id = p_a;
  UPDATE sb_checking SET bal = bal + p_amt WHERE id = p_b;
END $$;
