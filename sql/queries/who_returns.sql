-- Which tools can produce a field like this one, whatever its case and punctuation?
-- $field = eventId: name of the field
-- $limit = 50: rows to show
SELECT tool, provider, service, effect, place, type
FROM producers
WHERE key = regexp_replace(lower($field), '[^a-z0-9]', '', 'g')
ORDER BY length(place), tool, place
LIMIT $limit::INTEGER;
