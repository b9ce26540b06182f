-- Which parameters do most tools take, and how often are they required?
-- $limit = 30: rows to show
SELECT name, count(*) AS tools, round(100.0 * count(*) FILTER (required) / count(*), 1) AS percent_required,
    mode(type) AS usual_type
FROM parameters
GROUP BY name
ORDER BY tools DESC, name
LIMIT $limit::INTEGER;
