-- Which tools require a parameter like this one, whatever its case and punctuation?
-- $parameter = eventId: name of the parameter
-- $limit = 50: rows to show
SELECT tool, provider, service, effect, parameter, type
FROM consumers
WHERE required AND key = regexp_replace(lower($parameter), '[^a-z0-9]', '', 'g')
ORDER BY tool
LIMIT $limit::INTEGER;
