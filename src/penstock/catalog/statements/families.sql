-- name: run_family
-- Find a run with its children and grandchildren, up to a number of runs and a depth, whatever
-- parents were reported. A run without events of its own runs while a child of it does.
WITH RECURSIVE family (id, depth) AS (
    SELECT r.id, 0 FROM runs r WHERE r.id = :id
    UNION
    SELECT c.id, f.depth + 1 FROM family f JOIN runs c ON c.parent_run_id = f.id WHERE f.depth < :depth
)
SELECT r.id, r.parent_run_id, j.namespace, j.name,
       CASE WHEN r.state = 'NEW' AND r.stamps = '{}' AND EXISTS (
           SELECT 1 FROM runs c WHERE c.parent_run_id = r.id AND c.state = 'RUNNING'
       ) THEN 'RUNNING' ELSE r.state END,
       r.started_at, r.ended_at, MIN(f.depth)
FROM family f
JOIN runs r ON r.id = f.id
JOIN jobs j ON j.id = r.job_id
GROUP BY r.id, r.parent_run_id, j.namespace, j.name, r.state, r.stamps, r.started_at, r.ended_at
ORDER BY COALESCE(r.started_at, r.ended_at, 0), r.id
LIMIT :most
