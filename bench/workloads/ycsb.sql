CREATE TABLE usertable (k int PRIMARY KEY, f0 text NOT NULL, f1 text NOT NULL, f2 text NOT NULL, f3 text NOT NULL, f4 text NOT NULL);
CREATE FUNCTION load_ycsb(p_from int, p_to int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO usertable SELECT g, repeat('a', 100), repeat('b', 100), repeat('c', 100), repeat('d', 100), repeat('e', 100)
    FROM generate_series(p_from, p_to) g;
END $$;
CREATE FUNCTION ycsb_update(p_k int, p_v text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE usertable SET f0 = p_v WHERE k = p_k;
END $$;
CREATE FUNCTION ycsb_insert(p_k int, p_v text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO usertable VALUES (p_k, p_v, p_v, p_v, p_v, p_v) ON CONFLICT (k) DO NOTHING;
END $$;
CREATE FUNCTION ycsb_read_modify_write(p_k int, p_v text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  old text;
BEGIN
  SELECT f0 INTO old FROM usertable WHERE k = p_k;
  UPDATE usertable SET f0 = p_v WHERE k = p_k;
  RETURN old;
END $$;
