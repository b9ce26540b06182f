-- What `paraagent sql` shows: the tables of the catalog, and the current artifacts of the home.
-- `-- needs: NAME` stands before each view whose files may not exist yet; it is left out while they do not.
-- The catalog is attached as `store`; `getvariable('NAME')` is the list of an artifact's files.

-- needs: catalog
CREATE VIEW tools AS SELECT * FROM store.tools;

-- needs: catalog
CREATE VIEW parameters AS SELECT * FROM store.parameters;

-- needs: catalog
CREATE VIEW fields AS SELECT * FROM store.fields;

-- needs: catalog
CREATE VIEW edges AS SELECT * FROM store.edges;

-- needs: catalog
CREATE VIEW quarantine AS SELECT * FROM store.quarantine;

-- needs: catalog
CREATE VIEW build_info AS SELECT * FROM store.build_info;

-- needs: catalog
-- One row a service.
CREATE VIEW services AS
SELECT provider, service, any_value(category ORDER BY category) AS category, any_value(source ORDER BY source) AS source,
    count(*) AS tools, count(returns) AS with_returns, count(*) FILTER (deprecated) AS deprecated,
    round(avg(quality), 3) AS quality
FROM store.tools
GROUP BY provider, service;

-- needs: catalog
-- Which tool gives which field; `key` is the field's name without case and punctuation.
CREATE VIEW producers AS
SELECT tools.name AS tool, provider, service, effect, fields.name AS field, fields.path AS place, type, format,
    regexp_replace(lower(fields.name), '[^a-z0-9]', '', 'g') AS key
FROM store.fields JOIN store.tools USING (tool_id);

-- needs: catalog
-- Which tool takes which parameter; `key` as in `producers`.
CREATE VIEW consumers AS
SELECT tools.name AS tool, provider, service, effect, parameters.name AS parameter, type, required, format,
    regexp_replace(lower(parameters.name), '[^a-z0-9]', '', 'g') AS key
FROM store.parameters JOIN store.tools USING (tool_id);

-- needs: catalog
-- The edges with the names of both tools and where they belong.
CREATE VIEW links AS
SELECT given.name AS producer, field, taken.name AS consumer, parameter, kind, entity, confidence,
    given.provider AS from_provider, given.service AS from_service,
    taken.provider AS to_provider, taken.service AS to_service
FROM store.edges JOIN store.tools AS given ON producer = given.tool_id JOIN store.tools AS taken ON consumer = taken.tool_id;

-- needs: catalog
-- What the score of a tool is made of, each part from 0 to 1: 0.4 description (full at 60 characters), 0.3 parameters
-- (the share that is described), 0.2 returns (known or not), 0.1 current (not deprecated).
CREATE VIEW quality AS
SELECT tools.name AS tool, provider, service, quality AS score,
    round(least(length(description) / 60, 1), 3) AS description, round(coalesce(share, 1), 3) AS parameters,
    (returns IS NOT NULL)::INTEGER AS returns, (NOT deprecated)::INTEGER AS current
FROM store.tools
LEFT JOIN (SELECT tool_id, avg((description != '')::INTEGER) AS share FROM store.parameters GROUP BY tool_id)
    USING (tool_id);

-- needs: tasks
-- One row a task; slots, reference calls and answer atoms are JSON.
CREATE VIEW tasks AS
SELECT * FROM read_json(getvariable('tasks'), format = 'newline_delimited', columns = {
    task_id: 'VARCHAR', request: 'VARCHAR', shape: 'VARCHAR', width: 'INTEGER', reach: 'VARCHAR', split: 'VARCHAR',
    seed: 'BIGINT', slots: 'JSON', calls: 'JSON', atoms: 'JSON', state: 'JSON', hard_edges: 'JSON',
    soft_edges: 'JSON', distractors: 'JSON', difficulty: 'DOUBLE'});

-- needs: demos
-- One row a demonstration, as in the Hugging Face data set.
CREATE VIEW demos AS SELECT * FROM read_parquet(getvariable('demos'));

-- needs: scores
-- One row a scored episode of the evaluation.
CREATE VIEW scores AS SELECT * FROM read_parquet(getvariable('scores'));

-- needs: episodes
-- One row an episode of demonstrations, reinforcement learning, evaluation, `eval` and `act`; `turns` is JSON. A line that is
-- being written while this is read is left out.
CREATE VIEW episodes AS
WITH lines AS (
    SELECT coalesce(json -> 'row', json) AS episode, filename
    FROM read_json_objects(getvariable('episodes'), format = 'newline_delimited', filename = true, ignore_errors = true)
)
SELECT coalesce(nullif(regexp_extract(filename, '/artifacts/([a-z]+)/', 1), ''),
        regexp_extract(filename, '/(act|eval)/[^/]*/?[^/]*$', 1)) AS stage,
    episode ->> '$.episode_id' AS episode_id, episode ->> '$.policy' AS policy, episode ->> '$.task_id' AS task_id,
    (episode ->> '$.seed')::BIGINT AS seed, episode ->> '$.paradigm' AS paradigm, episode ->> '$.end' AS ended,
    episode ->> '$.request' AS request, episode ->> '$.answer' AS answer, episode ->> '$.error' AS error,
    json_array_length(episode -> '$.turns')::INTEGER AS n_turns, episode -> '$.rewards' AS rewards,
    episode -> '$.opening' AS opening, episode -> '$.turns' AS turns
FROM lines
WHERE episode IS NOT NULL;

-- needs: episodes
-- One row a turn, counted from 1; `events` is JSON.
CREATE VIEW turns AS
WITH unfolded AS (
    SELECT stage, episode_id, policy, paradigm, task_id, seed, unnest(turns::JSON[]) AS body,
        generate_subscripts(turns::JSON[], 1) AS turn
    FROM episodes
)
SELECT stage, episode_id, policy, paradigm, task_id, seed, turn, body ->> '$.family' AS family,
    (body ->> '$.well_formed')::BOOLEAN AS well_formed, body ->> '$.plan_rule' AS plan_rule,
    body ->> '$.plan.kind' AS plan_kind, nullif(body ->> '$.plan.problem', '') AS plan_problem,
    (body ->> '$.prompt_tokens')::INTEGER AS prompt_tokens,
    (body ->> '$.completion_tokens')::INTEGER AS completion_tokens,
    coalesce((body ->> '$.started')::DOUBLE, 0) AS started, coalesce((body ->> '$.seconds')::DOUBLE, 0) AS seconds,
    body ->> '$.text' AS text, body ->> '$.observation' AS observation, body -> '$.problems' AS problems,
    body -> '$.events' AS events
FROM unfolded;

-- needs: episodes
-- One row a call that an agent made. `occurrence` is the planned call that it was; times are seconds since the episode began.
CREATE VIEW calls AS
WITH unfolded AS (
    SELECT * EXCLUDE (events, text, observation, started, seconds), unnest(events::JSON[]) AS event FROM turns
)
SELECT stage, episode_id, policy, paradigm, task_id, seed, turn, event ->> '$.name' AS tool,
    event -> '$.arguments' AS arguments, nullif(event ->> '$.occurrence', '') AS occurrence,
    event ->> '$.error.type' AS error, event ->> '$.error.msg' AS message,
    nullif(event ->> '$.backend', '') AS backend, (event ->> '$.injected')::BOOLEAN AS injected,
    coalesce((event ->> '$.started')::DOUBLE, 0) AS started, coalesce((event ->> '$.seconds')::DOUBLE, 0) AS seconds,
    coalesce((event ->> '$.attempts')::INTEGER, 1) AS attempts, (event ->> '$.visible')::BOOLEAN AS visible,
    event -> '$.result' AS result
FROM unfolded
WHERE event ->> '$.kind' = 'call';

-- needs: episodes
-- One row a search; `hits` is the list of tools found, best first. Turn 0 is before the first, where a paradigm retrieves once.
CREATE VIEW searches AS
WITH unfolded AS (
    SELECT stage, episode_id, policy, paradigm, task_id, seed, 0 AS turn, unnest(opening::JSON[]) AS event FROM episodes
    UNION ALL
    SELECT stage, episode_id, policy, paradigm, task_id, seed, turn, unnest(events::JSON[]) AS event FROM turns
)
SELECT * EXCLUDE (event), nullif(event ->> '$.slot', '') AS slot, event ->> '$.query' AS query,
    (event -> '$.hits')::VARCHAR[] AS hits, (event ->> '$.visible')::BOOLEAN AS visible
FROM unfolded
WHERE event ->> '$.kind' = 'search';
