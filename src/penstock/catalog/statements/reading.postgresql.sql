-- name: read_latest_run_ids
-- Differs by necessity: PostgreSQL would try the inner list of IN on every run; LATERAL asks the
-- index once for each job.
-- The newest runs of jobs, newest first.
SELECT r.job_id, r.id
FROM {each ids uuid AS k}
CROSS JOIN LATERAL (
    SELECT l.job_id, l.id, l.created_at FROM runs l WHERE l.job_id = k.value
    ORDER BY l.created_at DESC, l.id DESC LIMIT :most
) r
ORDER BY r.created_at DESC, r.id DESC

-- name: read_job_ids_by_state
-- Differs by necessity: PostgreSQL would try the inner list of IN on every job; LATERAL asks the
-- index once for each state.
-- Which jobs, last updated first, whose newest run is in one of these states.
SELECT j.id
FROM {each states text AS s}
CROSS JOIN LATERAL (
    SELECT l.id, l.updated_at FROM jobs l WHERE l.latest_run_state = s.value AND l.hidden = 0
    ORDER BY l.updated_at DESC, l.id DESC LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
) j
ORDER BY j.updated_at DESC, j.id DESC LIMIT :limit OFFSET :offset

-- name: read_job_ids_of_namespace_by_state
-- Differs by necessity: PostgreSQL would try the inner list of IN on every job; LATERAL asks the
-- index once for each state.
-- Which jobs of a namespace, last updated first, whose newest run is in one of these states.
SELECT j.id
FROM {each states text AS s}
CROSS JOIN LATERAL (
    SELECT l.id, l.updated_at FROM jobs l
    WHERE l.namespace = :namespace AND l.latest_run_state = s.value AND l.hidden = 0
    ORDER BY l.updated_at DESC, l.id DESC LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
) j
ORDER BY j.updated_at DESC, j.id DESC LIMIT :limit OFFSET :offset
