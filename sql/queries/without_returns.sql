-- Which services leave most open what their tools return?
-- $limit = 20: rows to show
SELECT provider, service, tools, tools - with_returns AS without, round(100.0 * (tools - with_returns) / tools, 1) AS percent
FROM services
WHERE without > 0
ORDER BY without DESC, provider, service
LIMIT $limit::INTEGER;
