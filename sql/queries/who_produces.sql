-- Which tools can produce a value for a parameter of this name, best first?
-- $parameter = eventId: name of the parameter, whatever its case and punctuation
-- $service = : service of the tools that take it; empty for all
-- $limit = 50: rows to show
SELECT producer, field, entity, kind, max(confidence) AS confidence, count(DISTINCT consumer) AS consumers
FROM links
WHERE regexp_replace(lower(parameter), '[^a-z0-9]', '', 'g') = regexp_replace(lower($parameter), '[^a-z0-9]', '', 'g')
    AND ($service = '' OR to_service = $service)
GROUP BY producer, field, entity, kind
ORDER BY confidence DESC, consumers DESC, producer, field
LIMIT $limit::INTEGER;
