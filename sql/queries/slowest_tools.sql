-- Which tools take longest, and how often do they fail or have to be sent again?
SELECT tool, backend, count(*) AS calls, round(median(seconds), 3) AS median, round(max(seconds), 3) AS longest,
    count(*) FILTER (error IS NOT NULL) AS failed, sum(attempts - 1)::BIGINT AS sent_again
FROM calls
WHERE tool != ''
GROUP BY tool, backend
HAVING max(seconds) > 0
ORDER BY median DESC, tool
LIMIT 30;
