-- Reads of locks, claims, work and lots. A list is read in the order of an index, and the rows
-- that belong to it are read set by set afterwards. Counts stop at :most. A key of two parts is
-- one text: an id of 36 characters, then the rest.

-- name: read_lot_job
-- Find how a job processes lots, by the job's id.
SELECT j.hidden, {columns lot_jobs l}
FROM jobs j LEFT JOIN lot_jobs l ON l.job_id = j.id
WHERE j.id = :id

-- name: read_dataset_names
-- Find the names of datasets.
SELECT d.id, d.namespace, d.name
FROM {each ids uuid AS k} JOIN datasets d ON d.id = k.value

-- name: read_held_gates
-- Find the holds on these datasets and jobs, with their names and the dataset whose hold they
-- follow.
SELECT h.id, h.kind, COALESCE(d.namespace, j.namespace), COALESCE(d.name, j.name), s.namespace, s.name, h.who, h.why, h.since
FROM {each ids uuid AS k}
JOIN lot_holds h ON h.id = k.value
LEFT JOIN datasets d ON d.id = h.id
LEFT JOIN jobs j ON j.id = h.id
LEFT JOIN datasets s ON s.id = h.source_id

-- name: read_open_counts
-- Count the lots of a job in each state of open work, and find when the first of them is due.
SELECT 'READY', COUNT(*), 0 FROM (SELECT 1 FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'READY' LIMIT :most) a
UNION ALL
SELECT 'RUNNING', COUNT(*), 0 FROM (SELECT 1 FROM running_work c WHERE c.job_id = :job_id LIMIT :most) b
UNION ALL
SELECT 'WAITING', COUNT(*), 0 FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = :job_id AND w.state = 'WAITING' LIMIT :most) c
UNION ALL
SELECT 'HELD', COUNT(*), 0 FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = :job_id AND w.state = 'HELD' LIMIT :most) d
UNION ALL
SELECT 'RETRYABLE', COUNT(*), COALESCE(MIN(e.not_before), 0) FROM (SELECT w.not_before FROM stuck_work w WHERE w.job_id = :job_id AND w.state = 'RETRYABLE' LIMIT :most) e

-- name: read_claim_namespaces
-- Find the namespaces of the jobs of these runs.
SELECT DISTINCT j.namespace
FROM {each ids uuid AS k} JOIN runs r ON r.id = k.value JOIN jobs j ON j.id = r.job_id

-- name: read_claimed_run
-- Read a run, with its job and how that processes lots.
SELECT r.id, r.job_id, r.state, r.facets, j.namespace, j.name, l.outputs, l.tries_max
FROM runs r
JOIN jobs j ON j.id = r.job_id
JOIN lot_jobs l ON l.job_id = r.job_id
WHERE r.id = :id

-- name: read_claimer
-- Find who claimed a lot of a job.
SELECT g.who
FROM lot_log g
WHERE g.job_id = :job_id AND g.lot = :lot AND g.run_id = :run_id AND g.action = 'claim'
ORDER BY g.id DESC LIMIT 1

-- name: read_live_claims
-- Read a page of the live claims, the first lease to end first; of a namespace or on a lot if
-- given.
SELECT w.job_id, j.namespace, j.name, w.lot, w.owner, w.run_id, w.token, w.since, w.lease_until, l.inputs, l.outputs
FROM lot_work w
JOIN jobs j ON j.id = w.job_id
JOIN lot_jobs l ON l.job_id = w.job_id
WHERE w.state = 'RUNNING'
  AND (CAST(:namespace AS TEXT) IS NULL OR j.namespace = :namespace)
  AND (CAST(:lot AS TEXT) IS NULL OR w.lot = :lot)
ORDER BY w.lease_until, w.lot_key, w.job_id LIMIT :limit OFFSET :offset

-- name: count_live_claims
-- Count the live claims, of a namespace or on a lot if given.
SELECT COUNT(*) FROM (
    SELECT 1 FROM lot_work w JOIN jobs j ON j.id = w.job_id
    WHERE w.state = 'RUNNING'
      AND (CAST(:namespace AS TEXT) IS NULL OR j.namespace = :namespace)
      AND (CAST(:lot AS TEXT) IS NULL OR w.lot = :lot)
    LIMIT :most
) c

-- name: read_live_claims_of_jobs
-- Read a page of the live claims of some jobs, the first lease to end first; on a lot if given.
SELECT c.job_id, j.namespace, j.name, c.lot, c.owner, c.run_id, c.token, c.since, c.lease_until, l.inputs, l.outputs
FROM running_work c
JOIN jobs j ON j.id = c.job_id
JOIN lot_jobs l ON l.job_id = c.job_id
WHERE c.job_id {in ids uuid} AND (CAST(:lot AS TEXT) IS NULL OR c.lot = :lot)
ORDER BY c.lease_until, c.lot_key, c.job_id LIMIT :limit OFFSET :offset

-- name: count_live_claims_of_jobs
-- Count the live claims of some jobs, on a lot if given.
SELECT COUNT(*) FROM (
    SELECT 1 FROM running_work c
    WHERE c.job_id {in ids uuid} AND (CAST(:lot AS TEXT) IS NULL OR c.lot = :lot)
    LIMIT :most
) c

-- name: read_jobs_of_dataset
-- Find the jobs that read or write the lots of a dataset.
SELECT DISTINCT d.job_id FROM lot_job_datasets d WHERE d.dataset_id = :dataset_id

-- name: read_output_statuses
-- Find the makers of these lots; a key is a dataset's id and a lot.
SELECT s.dataset_id, s.lot, s.job_id, s.status
FROM {each keys text AS k}
JOIN lot_status s ON s.dataset_id = CAST(substr(k.value, 1, 36) AS UUID)
    AND s.lot = substr(k.value, 37) AND s.role = 'OUTPUT'

-- name: read_input_statuses
-- Find the status of these lots as inputs of jobs; a key is a dataset's id, a job's id and a
-- lot.
SELECT s.dataset_id, s.lot, s.job_id, s.status
FROM {each keys text AS k}
JOIN lot_status s ON s.dataset_id = CAST(substr(k.value, 1, 36) AS UUID)
    AND s.lot = substr(k.value, 73) AND s.role = 'INPUT' AND s.job_id = CAST(substr(k.value, 37, 36) AS UUID)

-- name: read_work_of_lot
-- Find the work of jobs on one lot.
SELECT {columns lot_work w}
FROM {each ids uuid AS k} JOIN lot_work w ON w.job_id = k.value AND w.lot = :lot

-- name: read_turns_of_lot
-- Find the replays for which the work of jobs on one lot is reserved; they are few.
SELECT t.job_id, p.id, p.name, p.is_paused
FROM {each ids uuid AS k}
JOIN lot_turns t ON t.job_id = k.value AND t.lot = :lot
JOIN turn_keepers p ON t.keepers LIKE '%' || CAST(p.id AS TEXT) || '%'
ORDER BY p.id

-- name: read_work
-- Read a page of a job's work, by lot.
SELECT {columns lot_work w}
FROM lot_work w WHERE w.job_id = :job_id
ORDER BY w.lot LIMIT :limit OFFSET :offset

-- name: read_done_work
-- Read a page of the finished lots of a job, by lot.
SELECT {columns lot_work w}
FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'DONE'
ORDER BY w.lot LIMIT :limit OFFSET :offset

-- name: read_ready_work
-- Read a page of the ready lots of a job, in the order of work.
SELECT {columns lot_work w}
FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'READY'
ORDER BY w.rank, w.lot_key LIMIT :limit OFFSET :offset

-- name: read_running_work
-- Read a page of the running lots of a job, in the order of work.
SELECT {columns lot_work c}
FROM running_work c WHERE c.job_id = :job_id
ORDER BY c.rank, c.lot_key LIMIT :limit OFFSET :offset

-- name: read_stuck_work
-- Read a page of the lots of a job that wait or are stuck in one state, in the order of work.
SELECT {columns lot_work w}
FROM stuck_work w WHERE w.job_id = :job_id AND w.state = :state
ORDER BY w.rank, w.lot_key LIMIT :limit OFFSET :offset

-- name: count_work
-- Count the lots of a job.
SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = :job_id LIMIT :most) c

-- name: count_done_work
-- Count the finished lots of a job.
SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'DONE' LIMIT :most) c

-- name: count_ready_work
-- Count the ready lots of a job.
SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'READY' LIMIT :most) c

-- name: count_running_work
-- Count the running lots of a job.
SELECT COUNT(*) FROM (SELECT 1 FROM running_work c WHERE c.job_id = :job_id LIMIT :most) c

-- name: count_stuck_work
-- Count the lots of a job that wait or are stuck in one state.
SELECT COUNT(*) FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = :job_id AND w.state = :state LIMIT :most) c

-- name: read_lots
-- Read a page of the lots of a dataset, by lot.
SELECT s.lot, s.job_id, s.status, s.run_id, s.version_id, s.since, j.namespace, j.name
FROM lot_status s LEFT JOIN jobs j ON j.id = s.job_id
WHERE s.dataset_id = :dataset_id AND s.role = 'OUTPUT'
ORDER BY s.lot LIMIT :limit OFFSET :offset

-- name: read_named_lots
-- Read a page of the lots of a dataset that no interval names, by lot, with their number; only a
-- number of lots at either end is searched.
SELECT s.lot, s.job_id, s.status, s.run_id, s.version_id, s.since, j.namespace, j.name, COUNT(*) OVER ()
FROM (
    SELECT a.lot FROM (
        SELECT f.lot FROM lot_status f WHERE f.dataset_id = :dataset_id AND f.role = 'OUTPUT'
        ORDER BY f.lot LIMIT :most
    ) a WHERE SUBSTR(a.lot, 9, 2) <> 'PT'
    UNION
    SELECT b.lot FROM (
        SELECT l.lot FROM lot_status l WHERE l.dataset_id = :dataset_id AND l.role = 'OUTPUT'
        ORDER BY l.lot DESC LIMIT :most
    ) b WHERE SUBSTR(b.lot, 9, 2) <> 'PT'
) n
JOIN lot_status s ON s.dataset_id = :dataset_id AND s.lot = n.lot AND s.role = 'OUTPUT'
LEFT JOIN jobs j ON j.id = s.job_id
ORDER BY s.lot LIMIT :limit OFFSET :offset

-- name: count_lots
-- Count the lots of a dataset.
SELECT COUNT(*) FROM (SELECT 1 FROM lot_status s WHERE s.dataset_id = :dataset_id AND s.role = 'OUTPUT' LIMIT :most) c

-- name: read_lot
-- Read one lot of a dataset.
SELECT s.lot, s.job_id, s.status, s.run_id, s.version_id, s.since, j.namespace, j.name
FROM lot_status s LEFT JOIN jobs j ON j.id = s.job_id
WHERE s.dataset_id = :dataset_id AND s.lot = :lot AND s.role = 'OUTPUT'

-- name: read_consumers
-- Find the jobs that read, or have read, these lots of a dataset, and the jobs that a person
-- holds there: such a hold is a row without a dataset.
SELECT c.lot, j.namespace, j.name, c.status, c.version_id, c.since
FROM (
    SELECT s.lot, s.job_id, s.status, s.version_id, s.since
    FROM {each lots text AS k}
    JOIN lot_status s ON s.dataset_id = :dataset_id AND s.lot = k.value AND s.role = 'INPUT'
    WHERE NOT EXISTS (
        SELECT 1 FROM lot_status n
        WHERE n.dataset_id = :nowhere AND n.lot = k.value AND n.role = 'INPUT' AND n.job_id = s.job_id
    )
    UNION ALL
    SELECT n.lot, n.job_id, n.status, s.version_id, n.since
    FROM {each lots text AS k}
    JOIN lot_status n ON n.dataset_id = :nowhere AND n.lot = k.value AND n.role = 'INPUT'
    JOIN lot_job_datasets w ON w.dataset_id = :dataset_id AND w.role = 'INPUT' AND w.job_id = n.job_id
    LEFT JOIN lot_status s ON s.dataset_id = w.dataset_id AND s.lot = k.value AND s.role = 'INPUT' AND s.job_id = w.job_id
) c
JOIN jobs j ON j.id = c.job_id
ORDER BY j.namespace, j.name

-- name: read_log_of_job
-- Read a page of the history of a job's lots, newest first.
SELECT g.at, g.action, g.lot, COALESCE(j.namespace, d.namespace), j.name, d.name, g.run_id, g.was, g.became, g.who, g.why
FROM lot_log g
LEFT JOIN jobs j ON j.id = g.job_id
LEFT JOIN datasets d ON d.id = g.dataset_id
WHERE g.job_id = :job_id
ORDER BY g.id DESC LIMIT :limit OFFSET :offset

-- name: read_log_of_work
-- Read a page of the history of one lot of a job, newest first.
SELECT g.at, g.action, g.lot, COALESCE(j.namespace, d.namespace), j.name, d.name, g.run_id, g.was, g.became, g.who, g.why
FROM lot_log g
LEFT JOIN jobs j ON j.id = g.job_id
LEFT JOIN datasets d ON d.id = g.dataset_id
WHERE g.job_id = :job_id AND g.lot = :lot
ORDER BY g.id DESC LIMIT :limit OFFSET :offset

-- name: read_log_of_lot
-- Read a page of the history of one lot of a dataset and of the jobs that read and write it. An
-- action of a job in a run is included if the run was to read or write the dataset, by the job's
-- wiring at that time (:named is how the wiring names the dataset), or if it did, or if that is
-- unknown.
SELECT t.at, t.action, t.lot, COALESCE(j.namespace, d.namespace), j.name, d.name, t.run_id, t.was, t.became, t.who, t.why
FROM (
    SELECT o.* FROM lot_log o WHERE o.dataset_id = :dataset_id AND o.lot = :lot
    UNION ALL
    SELECT o.*
    FROM {each jobs uuid AS k}
    JOIN lot_log o ON o.job_id = k.value AND o.lot = :lot
    LEFT JOIN runs r ON r.id = o.run_id
    LEFT JOIN job_versions v ON v.id = r.job_version_id
    WHERE v.id IS NULL OR REPLACE(v.inputs || v.outputs, :named, '') <> v.inputs || v.outputs
       OR EXISTS (SELECT 1 FROM run_datasets u
                  WHERE u.run_id = r.id AND u.role IN ('INPUT', 'OUTPUT') AND u.dataset_id = :dataset_id)
) t
LEFT JOIN jobs j ON j.id = t.job_id
LEFT JOIN datasets d ON d.id = t.dataset_id
ORDER BY t.id DESC LIMIT :limit OFFSET :offset

-- name: read_jobs_of_lot
-- Find the jobs that have read or written one lot of a dataset, and those that would now.
SELECT s.job_id FROM lot_status s WHERE s.dataset_id = :dataset_id AND s.lot = :lot
UNION
SELECT w.job_id FROM lot_job_datasets w WHERE w.dataset_id = :dataset_id

-- name: read_log_of_run
-- Read a page of the history of a run's claims on these lots of its job, newest first.
SELECT g.at, g.action, g.lot, COALESCE(j.namespace, d.namespace), j.name, d.name, g.run_id, g.was, g.became, g.who, g.why
FROM {each lots text AS k}
JOIN lot_log g ON g.job_id = :job_id AND g.lot = k.value AND g.run_id = :run_id
LEFT JOIN jobs j ON j.id = g.job_id
LEFT JOIN datasets d ON d.id = g.dataset_id
ORDER BY g.id DESC LIMIT :limit OFFSET :offset

-- name: read_lot_jobs
-- Find how these jobs process lots, with the names of the jobs.
SELECT j.namespace, j.name, {columns lot_jobs l}
FROM {each ids uuid AS k}
JOIN lot_jobs l ON l.job_id = k.value
JOIN jobs j ON j.id = l.job_id

-- name: read_makers_of_lot
-- Find the makers of one lot of these datasets, and its status.
SELECT s.dataset_id, s.job_id, s.status, s.held_from, s.version_id, s.since,
       j.namespace, j.name, l.tries_max, w.owner, w.tries, w.lease_until, w.error, w.run_id, m.state
FROM {each ids uuid AS k}
JOIN lot_status s ON s.dataset_id = k.value AND s.lot = :lot AND s.role = 'OUTPUT'
LEFT JOIN jobs j ON j.id = s.job_id
LEFT JOIN lot_jobs l ON l.job_id = s.job_id
LEFT JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot
LEFT JOIN lot_manifests m ON m.version_id = s.version_id AND s.status = 'ERROR' AND s.run_id IS NULL

-- name: read_readers_of_lot
-- Find the status of one lot as an input of jobs; a key is a dataset's id and a job's id.
SELECT s.dataset_id, s.job_id, s.status, s.version_id
FROM {each keys text AS k}
JOIN lot_status s ON s.dataset_id = CAST(substr(k.value, 1, 36) AS UUID)
    AND s.lot = :lot AND s.role = 'INPUT' AND s.job_id = CAST(substr(k.value, 37) AS UUID)

-- name: read_writers_of_datasets
-- Find the jobs that are wired to write lots of these datasets, and whether they were deleted.
SELECT d.dataset_id, d.job_id, j.namespace, j.name, j.hidden
FROM {each ids uuid AS k}
JOIN lot_job_datasets d ON d.dataset_id = k.value AND d.role = 'OUTPUT'
JOIN jobs j ON j.id = d.job_id
ORDER BY j.namespace, j.name

-- name: read_holds_of_lot
-- Find who or which rule held a lot, for these jobs or in these datasets, oldest first. Other
-- entries of a held lot (a conflict, a registration) did not hold it.
SELECT t.job_id, t.dataset_id, t.action, t.who, t.why, t.at
FROM (
    SELECT o.* FROM {each datasets uuid AS k} JOIN lot_log o ON o.dataset_id = k.value AND o.lot = :lot
    UNION ALL
    SELECT o.* FROM {each jobs uuid AS k} JOIN lot_log o ON o.job_id = k.value AND o.lot = :lot
) t
WHERE t.became IN ('HELD', 'HOLD') AND t.action IN ('hold', 'fail', 'expire')
ORDER BY t.id

-- name: read_reasons_of_lot
-- Find why one lot of these datasets is held.
SELECT {columns lot_reasons h}
FROM {each ids uuid AS k} JOIN lot_reasons h ON h.dataset_id = k.value AND h.lot = :lot

-- name: read_stale_work
-- Find the finished lots of jobs whose inputs have newer versions, by job.
SELECT j.namespace, j.name, {columns lot_work w}, {columns lot_jobs l}
FROM lot_work w JOIN jobs j ON j.id = w.job_id JOIN lot_jobs l ON l.job_id = w.job_id
WHERE w.stale_since > 0 AND :namespace IN ('', j.namespace) AND :job IN ('', j.name)
ORDER BY w.job_id, w.lot_key
LIMIT :limit OFFSET :offset;

-- name: read_dataset_checks
-- Read the check results of the lots of a dataset, newest first.
SELECT {columns lot_checks c}
FROM lot_checks c
WHERE c.dataset_id = :dataset_id
ORDER BY c.at DESC, c.lot DESC, c.name, c.field
LIMIT :limit OFFSET :offset;

-- name: read_dataset_checks_failed
-- Read the failed check results of the lots of a dataset, newest first.
SELECT {columns lot_checks c}
FROM lot_checks c
WHERE c.dataset_id = :dataset_id AND c.success = 0
ORDER BY c.at DESC, c.lot DESC, c.name, c.field
LIMIT :limit OFFSET :offset;

-- name: read_lot_checks
-- Read the check results of a lot, newest first.
SELECT {columns lot_checks c}
FROM lot_checks c
WHERE c.dataset_id = :dataset_id AND c.lot = :lot
ORDER BY c.at DESC, c.name, c.field;
