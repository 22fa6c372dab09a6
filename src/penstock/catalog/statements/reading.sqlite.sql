-- name: read_latest_run_ids
-- Differs by necessity: SQLite has no LATERAL, and takes the inner list once for each job.
-- The newest runs of jobs, newest first.
SELECT r.job_id, r.id
FROM {each ids uuid AS k}
JOIN runs r ON r.id IN (
    SELECT l.id FROM runs l WHERE l.job_id = k.value
    ORDER BY l.created_at DESC, l.id DESC LIMIT :most
)
ORDER BY r.created_at DESC, r.id DESC

-- name: read_job_ids_by_state
-- Differs by necessity: SQLite has no LATERAL, and takes the inner list once for each state.
-- Which jobs, last updated first, whose newest run is in one of these states.
SELECT j.id
FROM {each states text AS s}
JOIN jobs j ON j.id IN (
    SELECT l.id FROM jobs l WHERE l.latest_run_state = s.value AND l.hidden = 0
    ORDER BY l.updated_at DESC, l.id DESC LIMIT :limit + :offset
)
ORDER BY j.updated_at DESC, j.id DESC LIMIT :limit OFFSET :offset

-- name: read_job_ids_of_namespace_by_state
-- Differs by necessity: SQLite has no LATERAL, and takes the inner list once for each state.
-- Which jobs of a namespace, last updated first, whose newest run is in one of these states.
SELECT j.id
FROM {each states text AS s}
JOIN jobs j ON j.id IN (
    SELECT l.id FROM jobs l
    WHERE l.namespace = :namespace AND l.latest_run_state = s.value AND l.hidden = 0
    ORDER BY l.updated_at DESC, l.id DESC LIMIT :limit + :offset
)
ORDER BY j.updated_at DESC, j.id DESC LIMIT :limit OFFSET :offset
