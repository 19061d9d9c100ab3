CREATE TABLE gr_t (id int PRIMARY KEY, grp int NOT NULL, sub int NOT NULL, amt numeric(12,2) NOT NULL);
CREATE INDEX gr_t_grp ON gr_t(grp);
CREATE TABLE gr_out (id bigint PRIMARY KEY, grp int, sub int, total numeric(20,2));
CREATE FUNCTION load_group(p_from int, p_to int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO gr_t SELECT g, g % 1000, g % 17, (g % 777) / 7.0 FROM generate_series(p_from, p_to) g;
END $$;
CREATE FUNCTION c_group(p_id bigint, p_grp int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN -- 500 rows in 17 groups; the one with the largest sum is kept
  SELECT sub, sum(amt) AS total INTO r FROM gr_t WHERE grp BETWEEN p_grp AND p_grp + 4
   GROUP BY sub ORDER BY total DESC, sub LIMIT 1;
  INSERT INTO gr_out(id, grp, sub, total) VALUES (p_id, p_grp, r.sub, r.total);
END $$;
