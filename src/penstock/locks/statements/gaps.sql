-- What is there of the lots of a dataset, stretch by stretch. A stretch is a text: its first and its
-- last lot, each of :width characters. Longer and shorter ids between the two are other lots.
-- CROSS JOIN keeps SQLite from beginning with all lots of the dataset.

-- name: interval_of_dataset
-- By which interval the lots of a dataset are cut.
SELECT d.interval FROM lot_datasets d WHERE d.dataset_id = :dataset_id;

-- name: sample_lots
-- The first and the last lots of a dataset.
SELECT a.lot FROM (
    SELECT s.lot FROM lot_status s WHERE s.dataset_id = :dataset_id AND s.role = 'OUTPUT'
    ORDER BY s.lot LIMIT :most
) a
UNION
SELECT b.lot FROM (
    SELECT s.lot FROM lot_status s WHERE s.dataset_id = :dataset_id AND s.role = 'OUTPUT'
    ORDER BY s.lot DESC LIMIT :most
) b;

-- name: count_ready_lots
-- How many lots of each stretch are READY; counted stretch by stretch, so that nothing is sorted.
SELECT k.value, (
    SELECT COUNT(*) FROM lot_status s
    WHERE s.dataset_id = :dataset_id AND s.lot >= substr(k.value, 1, CAST(:width AS INTEGER))
      AND s.lot <= substr(k.value, CAST(:width AS INTEGER) + 1) AND s.role = 'OUTPUT' AND s.status = 'READY'
      AND length(s.lot) = :width
)
FROM {each keys text AS k};

-- name: count_odd_manifests
-- How many READY lots of each stretch have a manifest that is not complete, by its state.
SELECT k.value, m.state, COUNT(*)
FROM {each keys text AS k}
CROSS JOIN lot_manifests m
CROSS JOIN lot_status s
WHERE m.dataset_id = :dataset_id AND m.lot >= substr(k.value, 1, CAST(:width AS INTEGER))
  AND m.lot <= substr(k.value, CAST(:width AS INTEGER) + 1) AND m.state <> 'complete' AND length(m.lot) = :width
  AND s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT'
  AND s.version_id = m.version_id AND s.status = 'READY'
GROUP BY k.value, m.state;

-- name: odd_manifests
-- The READY lots of stretches whose manifest is not complete, and its state.
SELECT m.lot, m.state
FROM {each keys text AS k}
CROSS JOIN lot_manifests m
CROSS JOIN lot_status s
WHERE m.dataset_id = :dataset_id AND m.lot >= substr(k.value, 1, CAST(:width AS INTEGER))
  AND m.lot <= substr(k.value, CAST(:width AS INTEGER) + 1) AND m.state <> 'complete' AND length(m.lot) = :width
  AND s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT'
  AND s.version_id = m.version_id AND s.status = 'READY';
