-- What is the shortest way from the result of one tool to a call of another?
-- $tool: name of the tool to start with
-- $to = calendar_events_get: name of the tool to end with
-- $steps = 6: most calls after the first
WITH RECURSIVE ends AS MATERIALIZED (
    SELECT (SELECT tool_id FROM tools WHERE name = $tool) AS first, (SELECT tool_id FROM tools WHERE name = $to) AS last
),
pairs AS MATERIALIZED (SELECT DISTINCT producer, consumer FROM edges),
reached(tool_id, step, before) USING KEY (tool_id) AS (
    SELECT first, 0, NULL::VARCHAR FROM ends
    UNION
    SELECT pairs.consumer, min(reached.step) + 1, min(pairs.producer)
    FROM reached JOIN pairs ON pairs.producer = reached.tool_id
    LEFT JOIN recurring.reached AS known ON known.tool_id = pairs.consumer
    WHERE known.tool_id IS NULL AND reached.step < $steps::INTEGER
        AND NOT EXISTS (FROM recurring.reached AS done, ends WHERE done.tool_id = ends.last)
    GROUP BY pairs.consumer
),
way AS (
    SELECT reached.* FROM reached JOIN ends ON tool_id = last
    UNION ALL
    SELECT reached.* FROM way JOIN reached ON reached.tool_id = way.before
)
SELECT way.step, tools.name AS tool, best.field AS fed_by_field, best.parameter, best.entity
FROM way JOIN tools USING (tool_id)
LEFT JOIN edges AS best ON best.producer = way.before AND best.consumer = way.tool_id
QUALIFY row_number() OVER (PARTITION BY way.step ORDER BY best.confidence DESC, best.parameter, best.field) = 1
ORDER BY way.step;
