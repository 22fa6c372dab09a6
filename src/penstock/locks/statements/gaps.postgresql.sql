-- What is there of stretches whose lots are of several kinds. OFFSET 0 is a fence: PostgreSQL thinks
-- that a stretch is a large part of all lots, and would look at every lot for every stretch.

-- name: count_other_lots
-- Differs by necessity: LATERAL is not SQLite's. How many lots of each stretch are known and not READY, by status, and whether they were tried.
SELECT k.value, s.status, CASE WHEN w.tries > 0 THEN 1 ELSE 0 END, COUNT(*)
FROM {each keys text AS k}
CROSS JOIN LATERAL (
    SELECT s.lot, s.status, s.job_id FROM lot_status s
    WHERE s.dataset_id = :dataset_id AND s.lot >= substr(k.value, 1, CAST(:width AS INTEGER)) AND s.lot <= substr(k.value, CAST(:width AS INTEGER) + 1)
      AND s.role = 'OUTPUT' AND s.status <> 'READY' AND length(s.lot) = :width
    OFFSET 0
) s
LEFT JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot
GROUP BY k.value, s.status, CASE WHEN w.tries > 0 THEN 1 ELSE 0 END;

-- name: count_awaited_lots
-- Differs by necessity: LATERAL is not SQLite's. How many lots of each stretch nobody has begun to make, though jobs know them; how many are held.
SELECT k.value, COUNT(DISTINCT w.lot), COUNT(DISTINCT CASE WHEN w.state = 'HELD' THEN w.lot END)
FROM {each keys text AS k}
CROSS JOIN {each jobs uuid AS j}
CROSS JOIN LATERAL (
    SELECT w.lot, w.state FROM lot_work w
    WHERE w.job_id = j.value AND w.lot >= substr(k.value, 1, CAST(:width AS INTEGER)) AND w.lot <= substr(k.value, CAST(:width AS INTEGER) + 1)
      AND w.state <> 'DONE' AND length(w.lot) = :width
    OFFSET 0
) w
WHERE NOT EXISTS (
    SELECT 1 FROM lot_status s
    WHERE s.dataset_id = :dataset_id AND s.lot = w.lot AND s.role = 'OUTPUT'
  )
GROUP BY k.value;

-- name: known_lots
-- Differs by necessity: LATERAL is not SQLite's. The lots of stretches that are known: their status, and whether they were tried.
SELECT s.lot, s.status, CASE WHEN w.tries > 0 THEN 1 ELSE 0 END
FROM {each keys text AS k}
CROSS JOIN LATERAL (
    SELECT s.lot, s.status, s.job_id FROM lot_status s
    WHERE s.dataset_id = :dataset_id AND s.lot >= substr(k.value, 1, CAST(:width AS INTEGER)) AND s.lot <= substr(k.value, CAST(:width AS INTEGER) + 1)
      AND s.role = 'OUTPUT' AND length(s.lot) = :width
    OFFSET 0
) s
LEFT JOIN lot_work w ON s.status <> 'READY' AND w.job_id = s.job_id AND w.lot = s.lot;

-- name: awaited_lots
-- Differs by necessity: LATERAL is not SQLite's. What jobs have to do with lots of stretches, and have not done.
SELECT w.lot, w.state
FROM {each keys text AS k}
CROSS JOIN {each jobs uuid AS j}
CROSS JOIN LATERAL (
    SELECT w.lot, w.state FROM lot_work w
    WHERE w.job_id = j.value AND w.lot >= substr(k.value, 1, CAST(:width AS INTEGER)) AND w.lot <= substr(k.value, CAST(:width AS INTEGER) + 1)
      AND w.state <> 'DONE' AND length(w.lot) = :width
    OFFSET 0
) w;
