-- The lots that were made from a lot, along the versions that runs really read. A key of two
-- parts is one text: an id of 36 characters, then the rest.

-- name: replay_readers
-- Find the runs that have read these versions and completed, or are running.
SELECT i.version_id, r.id, r.job_id, r.job_version_id, r.state, r.started_at, r.ended_at, r.facets
FROM {each ids uuid AS k}
JOIN run_datasets i ON i.version_id = k.value AND i.role = 'INPUT'
JOIN runs r ON r.id = i.run_id
WHERE r.state IN ('COMPLETED', 'RUNNING');

-- name: replay_made
-- Find the versions that runs have written.
SELECT o.run_id, o.dataset_id, o.version_id
FROM {each ids uuid AS k}
JOIN run_datasets o ON o.run_id = k.value AND o.role = 'OUTPUT';

-- name: replay_runs
-- Find completed runs by their ids.
SELECT r.id, r.job_id, r.job_version_id, r.state, r.started_at, r.ended_at, r.facets
FROM {each ids uuid AS k} JOIN runs r ON r.id = k.value
WHERE r.state = 'COMPLETED';

-- name: replay_work
-- Find the work of jobs on lots; a key is a job's id and a lot.
SELECT {columns lot_work w}
FROM {each keys text AS k}
JOIN lot_work w ON w.job_id = CAST(substr(k.value, 1, 36) AS UUID) AND w.lot = substr(k.value, 37);

-- name: replay_outputs
-- Find the makers of these lots, their version, and why they are held; a key is a dataset's id
-- and a lot.
SELECT s.dataset_id, s.lot, s.job_id, s.version_id, s.status, s.held_from, h.why
FROM {each keys text AS k}
JOIN lot_status s ON s.dataset_id = CAST(substr(k.value, 1, 36) AS UUID)
    AND s.lot = substr(k.value, 37) AND s.role = 'OUTPUT'
LEFT JOIN lot_reasons h ON s.status = 'HOLD' AND h.dataset_id = s.dataset_id AND h.lot = s.lot;

-- name: replay_kept
-- Find the work that a person holds; a key is a job's id and a lot.
SELECT s.job_id, s.lot
FROM {each keys text AS k}
JOIN lot_status s ON s.dataset_id = :nowhere AND s.lot = substr(k.value, 37)
    AND s.role = 'INPUT' AND s.job_id = CAST(substr(k.value, 1, 36) AS UUID);

-- name: replay_lot
-- Find the version of a lot.
SELECT s.version_id FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.lot = :lot AND s.role = 'OUTPUT' AND s.version_id IS NOT NULL;

-- name: replay_versions_of_lot
-- Find all recorded versions of a lot: current, consumed, or with a manifest.
SELECT s.version_id FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.lot = :lot AND s.version_id IS NOT NULL
UNION
SELECT m.version_id FROM lot_manifests m WHERE m.dataset_id = :dataset_id AND m.lot = :lot;

-- name: replay_versions
-- Find versions by their ids, with the facets that name their lots.
SELECT v.id, v.dataset_id, v.run_id, v.published_at, v.facets, r.facets
FROM {each ids uuid AS k}
JOIN dataset_versions v ON v.id = k.value
LEFT JOIN runs r ON r.id = v.run_id;

-- name: replay_published
-- List the versions of a dataset that were published in a range of time.
SELECT v.id, v.dataset_id, v.run_id, v.published_at, v.facets, r.facets
FROM dataset_versions v
LEFT JOIN runs r ON r.id = v.run_id
WHERE v.dataset_id = :dataset_id AND v.published_at >= :start AND v.published_at < :end;

-- name: replay_job_version
-- Find a version of a job.
SELECT v.job_id, v.created_at FROM job_versions v WHERE v.id = :id;

-- name: replay_runs_ended
-- List the runs of a job that completed in a range of time.
SELECT r.id, r.job_id, r.job_version_id, r.state, r.started_at, r.ended_at, r.facets
FROM runs r
WHERE r.job_id = :job_id AND r.ended_at >= :start AND r.ended_at < :end AND r.state = 'COMPLETED';

-- name: replay_lot_of_batch
-- Find the lot of a deposit.
SELECT d.namespace, d.name, b.lot
FROM batch_lots b JOIN datasets d ON d.id = b.dataset_id
WHERE b.batch_id = :batch;
