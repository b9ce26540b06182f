-- What can be done with the result of this tool?
-- $tool = calendar_events_list: name of the tool that has answered
-- $limit = 50: rows to show
SELECT consumer, parameter, field, entity, confidence
FROM links
WHERE producer = $tool
ORDER BY confidence DESC, consumer, parameter
LIMIT $limit::INTEGER;
