-- Which errors do the calls of each policy run into?
SELECT stage, policy, coalesce(error, 'none') AS error, count(*) AS calls, any_value(message ORDER BY message) AS example
FROM calls
GROUP BY stage, policy, error
ORDER BY stage, policy, calls DESC, error;
