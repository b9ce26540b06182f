-- Which parameters does a tool require?
-- $tool: name of the tool
SELECT parameters.name, parameters.type, parameters.format, parameters.choices, parameters.description
FROM parameters JOIN tools USING (tool_id)
WHERE tools.name = $tool AND required
ORDER BY parameters.name;
