-- How do producers come by what they feed others with, and how sure is it?
SELECT kind, count(*) AS edges, count(DISTINCT producer) AS producers, count(DISTINCT consumer) AS consumers,
    count(DISTINCT entity) AS entities, round(avg(confidence), 2) AS confidence
FROM edges
GROUP BY kind
ORDER BY edges DESC;
