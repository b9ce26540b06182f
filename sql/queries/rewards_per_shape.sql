-- What does each system earn, by shape and width of the task?
SELECT system, shape, width, count(*) AS episodes, round(avg(outcome), 3) AS outcome, round(avg(step), 3) AS step,
    round(avg(phase), 3) AS phase, round(avg(format), 3) AS format, round(avg(penalty), 3) AS penalty,
    round(avg(trajectory), 3) AS trajectory
FROM scores
GROUP BY system, shape, width
ORDER BY system, shape, width;
