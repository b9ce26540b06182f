-- How often does a search return the tool that the task needs, by policy?
WITH needed AS (SELECT task_id, unnest(slots ->> '$[*].tool') AS tool FROM tasks)
SELECT stage, policy, count(*) AS needed, count(*) FILTER (found) AS found,
    round(100.0 * count(*) FILTER (found) / count(*), 1) AS percent
FROM (
    SELECT episodes.stage, episodes.policy, exists(
        SELECT 1 FROM searches
        WHERE searches.stage = episodes.stage AND searches.episode_id = episodes.episode_id
            AND list_contains(searches.hits, needed.tool)) AS found
    FROM episodes JOIN needed USING (task_id)
)
GROUP BY stage, policy
ORDER BY stage, policy;
