-- What share of each provider's tools is deprecated?
SELECT provider, count(*) AS tools, count(*) FILTER (deprecated) AS deprecated,
    round(100.0 * count(*) FILTER (deprecated) / count(*), 1) AS percent
FROM tools
GROUP BY provider
HAVING deprecated > 0
ORDER BY percent DESC, tools DESC, provider;
