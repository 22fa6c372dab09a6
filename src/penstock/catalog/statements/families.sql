-- name: run_family
-- A run and those that it began, and those that they began; as many as asked for, none deeper than
-- that, whatever parents were reported.
WITH RECURSIVE family (id, depth) AS (
    SELECT r.id, 0 FROM runs r WHERE r.id = :id
    UNION
    SELECT c.id, f.depth + 1 FROM family f JOIN runs c ON c.parent_run_id = f.id WHERE f.depth < :depth
)
SELECT r.id, r.parent_run_id, j.namespace, j.name, r.state, r.started_at, r.ended_at, MIN(f.depth)
FROM family f
JOIN runs r ON r.id = f.id
JOIN jobs j ON j.id = r.job_id
GROUP BY r.id, r.parent_run_id, j.namespace, j.name, r.state, r.started_at, r.ended_at
ORDER BY COALESCE(r.started_at, r.ended_at, 0), r.id
LIMIT :most
