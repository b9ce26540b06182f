-- What do the tools of each provider do to the world?
SELECT provider, count(*) FILTER (effect = 'read') AS read, count(*) FILTER (effect = 'create') AS creates,
    count(*) FILTER (effect = 'update') AS updates, count(*) FILTER (effect = 'delete') AS deletes,
    count(*) FILTER (effect = 'other') AS other
FROM tools
GROUP BY provider
ORDER BY count(*) DESC, provider;
