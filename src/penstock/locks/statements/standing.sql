-- The overview of the system. Counts stop at :most.

-- name: standing_of_jobs
-- Count the open lots of jobs by state, of the jobs that have any, in a namespace if one is
-- given. Each row has the number of jobs examined; without any result there is one row without a
-- name.
WITH running (job_id, total) AS (
    SELECT w.job_id, COUNT(*) FROM lot_work w WHERE w.state = 'RUNNING' GROUP BY w.job_id
),
open_job (job_id) AS (
    SELECT a.job_id FROM (SELECT job_id FROM ready_jobs LIMIT :looked_at) a
    UNION
    SELECT b.job_id FROM (SELECT job_id FROM stuck_jobs LIMIT :looked_at) b
    UNION
    SELECT job_id FROM running
)
SELECT whole.total, page.namespace, page.name,
    (SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = page.id AND w.state = 'READY' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = page.id AND w.state = 'WAITING' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = page.id AND w.state = 'RETRYABLE' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = page.id AND w.state = 'HELD' LIMIT :most) a),
    COALESCE(n.total, 0)
FROM (SELECT COUNT(*) AS total FROM open_job) whole
LEFT JOIN (
    SELECT j.id, j.namespace, j.name FROM open_job k JOIN jobs j ON j.id = k.job_id
    WHERE j.hidden = 0 AND (CAST(:namespace AS TEXT) IS NULL OR j.namespace = :namespace)
    LIMIT :jobs
) page ON true
LEFT JOIN running n ON n.job_id = page.id

-- name: oldest_work
-- Find since when the next lots of jobs have waited, at the longest, and since when the oldest
-- claim runs.
SELECT
    (SELECT MIN(n.since) FROM (
        SELECT (SELECT w.since FROM lot_work w WHERE w.job_id = k.job_id AND w.state = 'READY' ORDER BY w.rank, w.lot_key LIMIT 1) AS since
        FROM (SELECT job_id FROM ready_jobs LIMIT :looked_at) k
    ) n),
    (SELECT MIN(w.since) FROM lot_work w WHERE w.state = 'RUNNING');

-- name: stuck_lots
-- List the lots that failed or were held, and wait for another try or for a person: the newest
-- first, among a number of lots examined, with the inputs and outputs of the job, who held them
-- last, and why.
SELECT b.namespace, b.name, b.lot, b.state, b.tries, b.tries_max, b.error, b.since, b.not_before, b.run_id, b.job_id, b.inputs, b.outputs,
    (SELECT g.who FROM lot_log g WHERE g.job_id = b.job_id AND g.lot = b.lot AND g.became = 'HELD' AND g.action IN ('hold', 'fail', 'expire') ORDER BY g.id DESC LIMIT 1),
    (SELECT g.why FROM lot_log g WHERE g.job_id = b.job_id AND g.lot = b.lot AND g.became = 'HELD' AND g.action IN ('hold', 'fail', 'expire') ORDER BY g.id DESC LIMIT 1)
FROM (
    SELECT p.*, j.namespace, j.name, l.tries_max, l.inputs, l.outputs
    FROM (
        SELECT v.* FROM (SELECT job_id FROM stuck_jobs LIMIT :looked_at) k JOIN stuck_work v ON v.job_id = k.job_id
        WHERE v.state IN ('RETRYABLE', 'HELD')
        LIMIT :most
    ) p
    JOIN jobs j ON j.id = p.job_id
    JOIN lot_jobs l ON l.job_id = p.job_id
    WHERE j.hidden = 0 AND (CAST(:namespace AS TEXT) IS NULL OR j.namespace = :namespace)
    ORDER BY p.since DESC, p.lot LIMIT :limit
) b
ORDER BY b.since DESC, b.lot

-- name: held_outputs
-- Find the held lots among the outputs of jobs that no person holds there; a key is a dataset's
-- id, a job's id and a lot.
SELECT s.job_id, s.lot, d.namespace, d.name
FROM {each keys text AS k}
JOIN lot_status s ON s.dataset_id = CAST(substr(k.value, 1, 36) AS UUID) AND s.lot = substr(k.value, 73)
    AND s.role = 'OUTPUT' AND s.job_id = CAST(substr(k.value, 37, 36) AS UUID)
    AND s.status = 'HOLD' AND s.held_from <> ''
JOIN datasets d ON d.id = s.dataset_id
WHERE NOT EXISTS (
    SELECT 1 FROM lot_status n
    WHERE n.dataset_id = :nowhere AND n.lot = s.lot AND n.role = 'INPUT' AND n.job_id = s.job_id
)

-- name: whole_holds
-- List the held datasets and jobs, the newest hold first.
SELECT h.id, h.kind, COALESCE(d.namespace, j.namespace), COALESCE(d.name, j.name), s.namespace, s.name, h.who, h.why, h.since
FROM lot_holds h
LEFT JOIN datasets d ON d.id = h.id AND h.kind = 'DATASET'
LEFT JOIN jobs j ON j.id = h.id AND h.kind <> 'DATASET'
LEFT JOIN datasets s ON s.id = h.source_id
WHERE CAST(:namespace AS TEXT) IS NULL OR COALESCE(d.namespace, j.namespace) = :namespace
ORDER BY h.since DESC LIMIT :limit

-- name: newest_lots
-- Find, for each dataset with an interval, the newest READY lot among a number of lots, and the
-- oldest lot examined.
SELECT d.namespace, d.name, l.interval,
    (SELECT MAX(r.lot) FROM (SELECT s.lot, s.status FROM lot_status s WHERE s.dataset_id = l.dataset_id AND s.role = 'OUTPUT' ORDER BY s.lot DESC LIMIT :most) r WHERE r.status = 'READY'),
    (SELECT MIN(r.lot) FROM (SELECT s.lot FROM lot_status s WHERE s.dataset_id = l.dataset_id AND s.role = 'OUTPUT' ORDER BY s.lot DESC LIMIT :most) r)
FROM lot_datasets l JOIN datasets d ON d.id = l.dataset_id
WHERE l.interval <> '' AND d.hidden = 0 AND (CAST(:namespace AS TEXT) IS NULL OR d.namespace = :namespace)
ORDER BY d.namespace, d.name
LIMIT :datasets

-- name: lots_by_hour
-- Count the last lot events in each slot of time since a moment, by their kind.
SELECT e.at / :slot, e.kind, COUNT(*)
FROM (SELECT o.at, o.kind, o.dataset_id FROM lot_events o ORDER BY o.id DESC LIMIT :most) e
WHERE e.at >= :after
    AND (
        CAST(:namespace AS TEXT) IS NULL
        OR EXISTS (SELECT 1 FROM datasets d WHERE d.id = e.dataset_id AND d.namespace = :namespace)
    )
GROUP BY 1, 2
