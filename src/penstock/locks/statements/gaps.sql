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

-- name: count_other_lots
-- How many lots of each stretch are known and not READY, by status, and whether they were tried.
SELECT k.value, s.status, CASE WHEN w.tries > 0 THEN 1 ELSE 0 END, COUNT(*)
FROM {each keys text AS k}
CROSS JOIN lot_status s
LEFT JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot
WHERE s.dataset_id = :dataset_id AND s.lot >= substr(k.value, 1, CAST(:width AS INTEGER))
  AND s.lot <= substr(k.value, CAST(:width AS INTEGER) + 1) AND s.role = 'OUTPUT' AND s.status <> 'READY'
  AND length(s.lot) = :width
GROUP BY k.value, s.status, CASE WHEN w.tries > 0 THEN 1 ELSE 0 END;

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

-- name: count_awaited_lots
-- How many lots of each stretch nobody has begun to make, though jobs know them; how many are held.
SELECT k.value, COUNT(DISTINCT w.lot), COUNT(DISTINCT CASE WHEN w.state = 'HELD' THEN w.lot END)
FROM {each keys text AS k}
CROSS JOIN {each jobs uuid AS j}
CROSS JOIN lot_work w
WHERE w.job_id = j.value AND w.lot >= substr(k.value, 1, CAST(:width AS INTEGER))
  AND w.lot <= substr(k.value, CAST(:width AS INTEGER) + 1) AND w.state <> 'DONE' AND length(w.lot) = :width
  AND NOT EXISTS (
    SELECT 1 FROM lot_status s
    WHERE s.dataset_id = :dataset_id AND s.lot = w.lot AND s.role = 'OUTPUT'
  )
GROUP BY k.value;

-- name: known_lots
-- The lots of stretches that are known: their status, and whether they were tried.
SELECT s.lot, s.status, CASE WHEN w.tries > 0 THEN 1 ELSE 0 END
FROM {each keys text AS k}
CROSS JOIN lot_status s
LEFT JOIN lot_work w ON s.status <> 'READY' AND w.job_id = s.job_id AND w.lot = s.lot
WHERE s.dataset_id = :dataset_id AND s.lot >= substr(k.value, 1, CAST(:width AS INTEGER))
  AND s.lot <= substr(k.value, CAST(:width AS INTEGER) + 1) AND s.role = 'OUTPUT' AND length(s.lot) = :width;

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

-- name: awaited_lots
-- What jobs have to do with lots of stretches, and have not done.
SELECT w.lot, w.state
FROM {each keys text AS k}
CROSS JOIN {each jobs uuid AS j}
CROSS JOIN lot_work w
WHERE w.job_id = j.value AND w.lot >= substr(k.value, 1, CAST(:width AS INTEGER))
  AND w.lot <= substr(k.value, CAST(:width AS INTEGER) + 1) AND w.state <> 'DONE' AND length(w.lot) = :width;
