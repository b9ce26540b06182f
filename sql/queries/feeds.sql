-- Which tools of its own service can feed the required parameters of this tool?
-- $tool: name of the tool that needs something
SELECT consumers.parameter, producers.tool AS producer, producers.effect, producers.place
FROM consumers JOIN producers ON consumers.provider = producers.provider AND consumers.service = producers.service
    AND consumers.key = producers.key AND consumers.tool != producers.tool
WHERE consumers.tool = $tool AND consumers.required
ORDER BY consumers.parameter, length(producers.place), producer, producers.place;
