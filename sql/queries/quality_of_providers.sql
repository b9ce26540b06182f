-- How well do providers document their tools, and which part is missing most?
-- $limit = 20: rows to show, of the providers with most tools
SELECT provider, count(*) AS tools, round(avg(score), 2) AS score, round(avg(description), 2) AS description,
    round(avg(parameters), 2) AS parameters, round(avg(returns), 2) AS returns, round(avg(current), 2) AS current
FROM quality
GROUP BY provider
ORDER BY tools DESC, provider
LIMIT $limit::INTEGER;
