-- name: read_latest_run_ids
-- Differs by necessity: PostgreSQL would run the inner list of IN for every run; LATERAL reads
-- the index once for each job. List the newest runs of jobs, newest first.
SELECT r.job_id, r.id
FROM {each ids uuid AS k}
CROSS JOIN LATERAL (
    SELECT l.job_id, l.id, l.created_at FROM runs l WHERE l.job_id = k.value
    ORDER BY l.created_at DESC, l.id DESC LIMIT :most
) r
ORDER BY r.created_at DESC, r.id DESC

-- name: read_job_ids_by_state
-- Differs by necessity: PostgreSQL would run the inner list of IN for every job; LATERAL reads
-- the index once for each state. Find the jobs whose newest run is in one of these states, last
-- updated first.
SELECT j.id
FROM {each states text AS s}
CROSS JOIN LATERAL (
    SELECT l.id, l.updated_at FROM jobs l WHERE l.latest_run_state = s.value AND l.hidden = 0
    ORDER BY l.updated_at DESC, l.id DESC LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
) j
ORDER BY j.updated_at DESC, j.id DESC LIMIT :limit OFFSET :offset

-- name: read_job_ids_of_namespace_by_state
-- Differs by necessity: PostgreSQL would run the inner list of IN for every job; LATERAL reads
-- the index once for each state. Find the jobs of a namespace whose newest run is in one of
-- these states, last updated first.
SELECT j.id
FROM {each states text AS s}
CROSS JOIN LATERAL (
    SELECT l.id, l.updated_at FROM jobs l
    WHERE l.namespace = :namespace AND l.latest_run_state = s.value AND l.hidden = 0
    ORDER BY l.updated_at DESC, l.id DESC LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
) j
ORDER BY j.updated_at DESC, j.id DESC LIMIT :limit OFFSET :offset

-- name: read_events_newest_first
-- Differs by necessity: PostgreSQL would run the inner list of IN for every event; LATERAL reads
-- the index once for each kind. Read a page of the events of these kinds, newest first.
SELECT (SELECT e.payload FROM events e WHERE e.id = page.id)
FROM (
    SELECT l.id, l.event_time
    FROM {each kinds text AS k}
    CROSS JOIN LATERAL (
        SELECT i.id, i.event_time FROM events i
        WHERE i.kind = k.value
          AND i.event_time >= :after AND i.event_time < :before
        ORDER BY i.event_time DESC, i.id DESC
        LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
    ) l
    ORDER BY l.event_time DESC, l.id DESC
    LIMIT :limit OFFSET :offset
) page
ORDER BY page.event_time DESC, page.id DESC

-- name: read_events_oldest_first
-- Differs by necessity: PostgreSQL would run the inner list of IN for every event; LATERAL reads
-- the index once for each kind. Read a page of the events of these kinds, oldest first.
SELECT (SELECT e.payload FROM events e WHERE e.id = page.id)
FROM (
    SELECT l.id, l.event_time
    FROM {each kinds text AS k}
    CROSS JOIN LATERAL (
        SELECT i.id, i.event_time FROM events i
        WHERE i.kind = k.value
          AND i.event_time >= :after AND i.event_time < :before
        ORDER BY i.event_time, i.id
        LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
    ) l
    ORDER BY l.event_time, l.id
    LIMIT :limit OFFSET :offset
) page
ORDER BY page.event_time, page.id

-- name: read_events_of_namespace_newest_first
-- Differs by necessity: PostgreSQL would run the inner list of IN for every event; LATERAL reads
-- the index once for each kind. Read a page of the events of these kinds about one namespace,
-- newest first.
SELECT (SELECT e.payload FROM events e WHERE e.id = page.id)
FROM (
    SELECT l.id, l.event_time
    FROM {each kinds text AS k}
    CROSS JOIN LATERAL (
        SELECT i.id, i.event_time FROM events i
        WHERE i.namespace = :namespace AND i.kind = k.value
          AND i.event_time >= :after AND i.event_time < :before
        ORDER BY i.event_time DESC, i.id DESC
        LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
    ) l
    ORDER BY l.event_time DESC, l.id DESC
    LIMIT :limit OFFSET :offset
) page
ORDER BY page.event_time DESC, page.id DESC

-- name: read_events_of_namespace_oldest_first
-- Differs by necessity: PostgreSQL would run the inner list of IN for every event; LATERAL reads
-- the index once for each kind. Read a page of the events of these kinds about one namespace,
-- oldest first.
SELECT (SELECT e.payload FROM events e WHERE e.id = page.id)
FROM (
    SELECT l.id, l.event_time
    FROM {each kinds text AS k}
    CROSS JOIN LATERAL (
        SELECT i.id, i.event_time FROM events i
        WHERE i.namespace = :namespace AND i.kind = k.value
          AND i.event_time >= :after AND i.event_time < :before
        ORDER BY i.event_time, i.id
        LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
    ) l
    ORDER BY l.event_time, l.id
    LIMIT :limit OFFSET :offset
) page
ORDER BY page.event_time, page.id

-- name: read_run_ids_by_state
-- Differs by necessity: PostgreSQL would run the inner list of IN for every run; LATERAL reads
-- the index once for each state. Find the runs in one of these states, newest first, after one
-- of them.
SELECT r.id, r.created_at
FROM {each states text AS s}
CROSS JOIN LATERAL (
    SELECT l.id, l.created_at FROM runs l
    WHERE l.state = s.value
      AND (l.created_at, l.id) < (CAST(:before AS bigint), CAST(:before_id AS uuid))
    ORDER BY l.created_at DESC, l.id DESC LIMIT :limit
) r
ORDER BY r.created_at DESC, r.id DESC LIMIT :limit

-- name: read_run_ids_of_namespace_by_state
-- Differs by necessity: PostgreSQL would run the inner list of IN for every run; LATERAL reads
-- the index once for each state. Find the runs of a namespace in one of these states, newest
-- first, after one of them.
SELECT r.id, r.created_at
FROM {each states text AS s}
CROSS JOIN LATERAL (
    SELECT l.id, l.created_at FROM runs l
    WHERE l.namespace = :namespace AND l.state = s.value
      AND (l.created_at, l.id) < (CAST(:before AS bigint), CAST(:before_id AS uuid))
    ORDER BY l.created_at DESC, l.id DESC LIMIT :limit
) r
ORDER BY r.created_at DESC, r.id DESC LIMIT :limit
