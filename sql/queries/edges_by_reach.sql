-- How many edges stay in a service, join services of a provider, or join providers, and by what?
WITH counted AS (
    SELECT CASE WHEN from_provider != to_provider THEN 'across providers'
            WHEN from_service != to_service THEN 'across services' ELSE 'in a service' END AS reach,
        split_part(entity, ':', 2) AS entity, count(*) AS edges,
        count(DISTINCT from_provider) AS from_providers, count(DISTINCT to_provider) AS to_providers
    FROM links
    GROUP BY 1, 2
)
SELECT *
FROM counted
QUALIFY row_number() OVER (PARTITION BY reach ORDER BY edges DESC, entity) <= 10
ORDER BY reach, edges DESC, entity;
