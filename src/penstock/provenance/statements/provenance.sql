-- The origin of lots. All rows are found by key; a key of two parts is one text: an id of 36
-- characters, then the rest.

-- name: lot_now
-- Find the current version of a lot, and its status.
SELECT s.version_id, s.status
FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.lot = :lot AND s.role = 'OUTPUT'

-- name: versions_with_manifests
-- Find the versions of a lot that have had a manifest, and since when.
SELECT m.version_id, m.at FROM lot_manifests m WHERE m.dataset_id = :dataset_id AND m.lot = :lot

-- name: versions_made_of_lot
-- Find the versions of a lot that runs of any job have published, and when those runs reported
-- their end.
SELECT w.version_id, r.ended_at
FROM job_edges e
JOIN lot_log g ON g.job_id = e.job_id AND g.lot = :lot AND g.action = 'complete'
JOIN runs r ON r.id = g.run_id AND r.ended_at IS NOT NULL
JOIN run_datasets w ON w.run_id = g.run_id AND w.role = 'OUTPUT' AND w.dataset_id = :dataset_id
WHERE e.dataset_id = :dataset_id AND e.role = 'OUTPUT'

-- name: registrations_of_lots
-- Find when lots were registered, and by whom; a key is a dataset's id and a lot.
SELECT g.dataset_id, g.lot, g.at, g.who
FROM {each keys text AS k}
JOIN lot_log g ON g.dataset_id = CAST(substr(k.value, 1, 36) AS UUID) AND g.lot = substr(k.value, 37)
WHERE g.action IN ('register', 'announce')
ORDER BY g.id

-- name: version_declared_from
-- Find the first version of a dataset in a range of time whose facets name exactly this lot.
SELECT v.id, v.published_at
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at >= :at AND v.published_at < :until AND v.facets = :facets
ORDER BY v.published_at, v.id LIMIT 1

-- name: versions_declared_like
-- Find the first versions of a dataset in a range of time whose facets may name a lot.
SELECT v.id, v.facets
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at >= :at AND v.published_at < :until
  AND v.facets LIKE :pattern ESCAPE '!'
ORDER BY v.published_at, v.id LIMIT :most

-- name: publications
-- Find when versions were published.
SELECT v.id, v.published_at
FROM {each ids uuid AS k} JOIN dataset_versions v ON v.id = k.value
WHERE v.published_at IS NOT NULL

-- name: versions_in_full
-- Read versions, with their datasets and runs.
SELECT v.id, v.dataset_id, d.namespace, d.name, v.number, v.origin, v.run_id, v.facets, v.created_at, v.published_at
FROM {each ids uuid AS k}
JOIN dataset_versions v ON v.id = k.value
JOIN datasets d ON d.id = v.dataset_id

-- name: runs_in_full
-- Read runs, with their jobs and job versions.
SELECT r.id, r.job_id, j.namespace, j.name, r.job_version_id, v.location, r.state, r.started_at, r.ended_at, r.facets
FROM {each ids uuid AS k}
JOIN runs r ON r.id = k.value
JOIN jobs j ON j.id = r.job_id
LEFT JOIN job_versions v ON v.id = r.job_version_id

-- name: versions_read_by_runs
-- Find the versions of a lot that runs read; a key is a run's id and a lot. If a run reads
-- several lots, the catalog pins one of them; the status rows have each.
SELECT u.run_id, COALESCE(s.version_id, u.version_id)
FROM {each keys text AS k}
JOIN runs r ON r.id = CAST(substr(k.value, 1, 36) AS UUID)
JOIN run_datasets u ON u.run_id = r.id AND u.role = 'INPUT'
LEFT JOIN lot_status s ON s.dataset_id = u.dataset_id AND s.lot = substr(k.value, 37)
    AND s.role = 'INPUT' AND s.job_id = r.job_id AND s.run_id = r.id

-- name: claimers_of_runs
-- Find who claimed lots; a key is a job's id, a run's id and a lot.
SELECT g.run_id, g.who
FROM {each keys text AS k}
JOIN lot_log g ON g.job_id = CAST(substr(k.value, 1, 36) AS UUID) AND g.lot = substr(k.value, 73)
    AND g.run_id = CAST(substr(k.value, 37, 36) AS UUID)
WHERE g.action = 'claim'

-- name: parts_of_runs
-- Count the completed parts of runs.
SELECT r.parent_run_id, COUNT(*)
FROM {each ids uuid AS k}
JOIN runs r ON r.parent_run_id = k.value AND r.state = 'COMPLETED'
GROUP BY r.parent_run_id

-- name: arrived_in_lot
-- List the first objects of a lot of arrivals.
SELECT o.uri, o.size, o.mark, o.modified, o.at
FROM arrived_objects o
WHERE o.dataset_id = :dataset_id AND o.lot = :lot AND o.state <> 'refused'
ORDER BY o.uri LIMIT :most

-- name: count_arrived_in_lot
-- Count the objects of a lot of arrivals.
SELECT COUNT(*) FROM arrived_objects o
WHERE o.dataset_id = :dataset_id AND o.lot = :lot AND o.state <> 'refused'

-- name: batches_of_lots
-- List the batches of lots, oldest first; a key is a dataset's id and a lot.
SELECT b.dataset_id, b.lot, b.batch_id, b.collection, b.submitter, b.at
FROM {each keys text AS k}
JOIN batch_lots b ON b.dataset_id = CAST(substr(k.value, 1, 36) AS UUID) AND b.lot = substr(k.value, 37)
ORDER BY b.batch_id

-- name: objects_by_arks
-- Find all stored versions of these objects.
SELECT o.ark, o.version, o.collection, o.batch_id, o.job_id, o.location, o.digest, o.run_id
FROM {each arks text AS k} JOIN stored_objects o ON o.ark = k.value
ORDER BY o.ark, o.version

-- name: lots_of_dataset_from
-- Read a page of the lots of a dataset, each with its current version.
SELECT s.lot, s.version_id
FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.lot > :after AND s.role = 'OUTPUT'
ORDER BY s.lot
LIMIT :most
