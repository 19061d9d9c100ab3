SELECT d.region, d.tier, count(*) AS n, sum(f.qty * f.price) AS revenue, avg(f.price) AS avg_price
FROM fact f JOIN dim d ON d.id = f.dim_id WHERE f.d >= date '2024-06-01'
GROUP BY d.region, d.tier ORDER BY revenue DESC, d.region, d.tier LIMIT 10;
