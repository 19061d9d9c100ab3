CREATE TABLE kv (k int PRIMARY KEY, v text NOT NULL);
CREATE FUNCTION load_kv(p_from int, p_to int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO kv SELECT g, repeat('v', 64) FROM generate_series(p_from, p_to) g;
END $$;
