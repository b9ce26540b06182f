-- How many tasks of which shape and reach has each split?
SELECT split, shape, width, reach, count(*) AS tasks
FROM tasks
GROUP BY split, shape, width, reach
ORDER BY split, shape, width, reach;
