-- Which tools have a name like this one?
-- $name: a name, misspelt perhaps
-- $limit = 10: rows to show
SELECT name, provider, service, round(jaro_winkler_similarity(lower(name), lower($name)), 3) AS similarity
FROM tools
ORDER BY similarity DESC, name
LIMIT $limit::INTEGER;
