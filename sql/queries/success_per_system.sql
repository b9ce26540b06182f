-- What share of the held-out tasks does each system solve, and at what cost?
SELECT system, count(*) AS episodes, count(*) FILTER (solved) AS solved,
    round(100.0 * count(*) FILTER (solved) / count(*), 1) AS percent, round(avg(turns), 2) AS turns,
    round(avg(searches), 2) AS searches, round(avg(calls), 2) AS calls, round(avg(completion_tokens)) AS tokens
FROM scores
GROUP BY system
ORDER BY percent DESC, system;
