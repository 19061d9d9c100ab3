CREATE TABLE accounts_chk (id int PRIMARY KEY, bal numeric(14,2) NOT NULL);
CREATE FUNCTION load_accounts(p_from int, p_to int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO accounts_chk SELECT g, 10000 FROM generate_series(p_from, p_to) g;
END $$;
CREATE FUNCTION c_transfer(p_a int, p_b int, p_amt numeric) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  va numeric;
  vb numeric;
BEGIN -- SmallBank's SendPayment: read two, update two
  SELECT bal INTO va FROM accounts_chk WHERE id = p_a;
  SELECT bal INTO vb FROM accounts_chk WHERE id = p_b;
  IF va IS NULL OR vb IS NULL THEN
    RAISE EXCEPTION 'no such account' USING ERRCODE = 'P0002';
  END IF;
  IF va < p_amt THEN
    RAISE EXCEPTION 'insufficient funds: % < %', va, p_amt USING ERRCODE = 'P0001';
  END IF;
  UPDATE accounts_chk SET bal = va - p_amt WHERE id = p_a;
  UPDATE accounts_chk SET bal = vb + p_amt WHERE id = p_b;
END $$;
