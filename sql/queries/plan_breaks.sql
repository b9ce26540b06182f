-- Where do plans break: which rules of theirs does each policy violate?
SELECT policy, what, count(*) AS times, count(DISTINCT episode_id) AS episodes, any_value(detail ORDER BY detail) AS example
FROM (
    SELECT policy, episode_id, 'no plan, though one is due' AS what, NULL AS detail
    FROM turns WHERE plan_rule = 'required' AND plan_kind IS NULL
    UNION ALL
    SELECT policy, episode_id, 'a plan where none is due', plan_kind
    FROM turns WHERE plan_rule = 'forbidden' AND plan_kind IS NOT NULL
    UNION ALL
    SELECT policy, episode_id, 'a plan that is ' || replace(plan_kind, '_', ' '), plan_problem
    FROM turns WHERE plan_rule != 'forbidden' AND plan_kind NOT IN ('initial', 'revise', 'restart')
    UNION ALL
    SELECT policy, episode_id, 'a call that the plan has not ready', tool
    FROM calls WHERE paradigm = 'paraact' AND occurrence IS NULL AND tool != ''
)
GROUP BY policy, what
ORDER BY policy, times DESC, what;
