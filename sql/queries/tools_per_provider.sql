-- How many tools has each provider, and how many say what they return?
SELECT provider, count(*) AS tools, count(DISTINCT service) AS services, count(returns) AS with_returns
FROM tools
GROUP BY provider
ORDER BY tools DESC, provider;
