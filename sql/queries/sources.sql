-- Where do the tools come from, in which version, and under which licences?
WITH counted AS (
    SELECT source, source_version, licence, count(*) AS tools FROM tools GROUP BY ALL
)
SELECT source, source_version, sum(tools)::BIGINT AS tools, count(*) AS licences,
    string_agg(concat(licence, ' (', tools, ')'), ', ' ORDER BY tools DESC, licence) FILTER (place <= 4) AS most_common
FROM (SELECT *, row_number() OVER (PARTITION BY source, source_version ORDER BY tools DESC, licence) AS place FROM counted)
GROUP BY source, source_version
ORDER BY tools DESC, source, source_version;
