-- Where do the tools come from, in which version and under which licence?
SELECT source, source_version, licence, count(*) AS tools, count(DISTINCT provider) AS providers
FROM tools
GROUP BY source, source_version, licence
ORDER BY source, tools DESC, source_version, licence
LIMIT 200;
