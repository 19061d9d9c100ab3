CREATE TABLE jo_a (id int PRIMARY KEY, grp int NOT NULL, val int NOT NULL, amt numeric(12,2) NOT NULL);
CREATE INDEX jo_a_grp ON jo_a(grp);
CREATE TABLE jo_b (id int PRIMARY KEY, a_id int NOT NULL, qty int NOT NULL);
CREATE INDEX jo_b_aid ON jo_b(a_id);
CREATE TABLE jo_out (id bigint PRIMARY KEY, grp int, cnt bigint, total numeric(20,2));
CREATE FUNCTION load_join_a(p_from int, p_to int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO jo_a SELECT g, g % 1000, g % 97, (g % 1000) / 10.0 FROM generate_series(p_from, p_to) g;
END $$;
CREATE FUNCTION load_join_b(p_from int, p_to int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO jo_b SELECT g, 1 + (g % 20000), g % 13 FROM generate_series(p_from, p_to) g;
END $$;
CREATE FUNCTION c_join(p_id bigint, p_grp int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_cnt bigint;
  v_total numeric;
BEGIN -- 5 groups of 20 rows of jo_a, with 5 rows of jo_b each: 500 joined rows
  SELECT count(*), COALESCE(sum(a.amt * b.qty), 0) INTO v_cnt, v_total
    FROM jo_a a JOIN jo_b b ON b.a_id = a.id WHERE a.grp BETWEEN p_grp AND p_grp + 4;
  INSERT INTO jo_out(id, grp, cnt, total) VALUES (p_id, p_grp, v_cnt, v_total);
END $$;
