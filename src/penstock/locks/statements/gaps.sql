-- The lots of a dataset, stretch by stretch. A stretch is a text: its first and its last lot,
-- each of :width characters. Longer and shorter ids between the two are other lots. CROSS JOIN
-- keeps SQLite from starting with all lots of the dataset.

-- name: interval_of_dataset
-- Find the interval of a dataset's lots.
SELECT d.interval FROM lot_datasets d WHERE d.dataset_id = :dataset_id;

-- name: sample_lots
-- Find the first and the last lots of a dataset.
SELECT a.lot FROM (
    SELECT s.lot FROM lot_status s WHERE s.dataset_id = :dataset_id AND s.role = 'OUTPUT'
    ORDER BY s.lot LIMIT :most
) a
UNION
SELECT b.lot FROM (
    SELECT s.lot FROM lot_status s WHERE s.dataset_id = :dataset_id AND s.role = 'OUTPUT'
    ORDER BY s.lot DESC LIMIT :most
) b;

-- name: read_lots_named
-- Read some lots of a dataset.
SELECT s.lot, s.job_id, s.status, s.run_id, s.version_id, s.since, j.namespace, j.name
FROM {each lots text AS k}
CROSS JOIN lot_status s
LEFT JOIN jobs j ON j.id = s.job_id
WHERE s.dataset_id = :dataset_id AND s.lot = k.value AND s.role = 'OUTPUT';

-- name: odd_manifests
-- Find the READY lots of stretches whose manifest is not complete, and its state.
SELECT m.lot, m.state
FROM {each keys text AS k}
CROSS JOIN lot_manifests m
CROSS JOIN lot_status s
WHERE m.dataset_id = :dataset_id AND m.lot >= substr(k.value, 1, CAST(:width AS INTEGER))
  AND m.lot <= substr(k.value, CAST(:width AS INTEGER) + 1) AND m.state <> 'complete' AND length(m.lot) = :width
  AND s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT'
  AND s.version_id = m.version_id AND s.status = 'READY';
