-- Why were interfaces left out of the catalog, and how many?
SELECT source, reason, count(*) AS interfaces, any_value(detail ORDER BY detail DESC) AS example
FROM quarantine
GROUP BY source, reason
ORDER BY interfaces DESC, source, reason;
