-- Which tools can feed the parameters of this tool, and with which field?
-- $tool: name of the tool that needs something
SELECT links.parameter, links.producer, links.field, links.kind, links.confidence
FROM links
WHERE links.consumer = $tool
ORDER BY links.parameter, links.confidence DESC, links.producer;
