-- Which tools feed most others, and by how many are they fed?
-- $limit = 20: rows to show
SELECT name AS tool, coalesce(feeds, 0) AS feeds, coalesce(fed_by, 0) AS fed_by
FROM tools
LEFT JOIN (SELECT producer AS tool_id, count(DISTINCT consumer) AS feeds FROM edges GROUP BY ALL) USING (tool_id)
LEFT JOIN (SELECT consumer AS tool_id, count(DISTINCT producer) AS fed_by FROM edges GROUP BY ALL) USING (tool_id)
WHERE feeds > 0 OR fed_by > 0
ORDER BY feeds DESC NULLS LAST, fed_by DESC, tool
LIMIT $limit::INTEGER;
