CREATE TABLE dim (id int PRIMARY KEY, region text NOT NULL, tier int NOT NULL);
CREATE TABLE fact (id int PRIMARY KEY, dim_id int NOT NULL, qty int NOT NULL, price numeric(10,2) NOT NULL, d date NOT NULL);
CREATE FUNCTION load_dim(p_from int, p_to int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO dim SELECT g, 'region' || (g % 25), g % 5 FROM generate_series(p_from, p_to) g;
END $$;
CREATE FUNCTION load_fact(p_from int, p_to int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO fact SELECT g, 1 + (g::bigint * 7919 % 10000), g % 50, (g % 10000) / 100.0, date '2024-01-01' + (g % 730)
    FROM generate_series(p_from, p_to) g;
END $$;
