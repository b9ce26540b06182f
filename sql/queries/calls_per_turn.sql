-- How many calls go out together, by policy and paradigm?
SELECT policy, paradigm, count(*) AS calling_turns, sum(n)::BIGINT AS calls, round(avg(n), 2) AS calls_a_turn, max(n) AS most,
    count(*) FILTER (n > 1) AS turns_together
FROM (SELECT stage, policy, paradigm, episode_id, turn, count(*) AS n FROM calls GROUP BY ALL)
GROUP BY policy, paradigm
ORDER BY calls_a_turn DESC, policy, paradigm;
