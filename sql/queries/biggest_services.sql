-- Which services have the most tools?
-- $limit = 20: rows to show
SELECT provider, service, category, tools, with_returns, deprecated, quality
FROM services
ORDER BY tools DESC, provider, service
LIMIT $limit::INTEGER;
