-- The lots of stretches with lots of several kinds. OFFSET 0 is a fence: PostgreSQL estimates
-- that a stretch is a large part of all lots, and would read every lot for every stretch.

-- name: count_ready_lots
-- Differs by necessity: PostgreSQL stores rows in no order, so reading each through an index is
-- slow. Lots are counted in the index alone, and one scan finds the few that are not READY.
-- Count the READY lots of each stretch, and report whether it has others.
SELECT k.value, (
    SELECT COUNT(*) FROM lot_status s
    WHERE s.dataset_id = :dataset_id AND s.lot >= substr(k.value, 1, CAST(:width AS INTEGER))
      AND s.lot <= substr(k.value, CAST(:width AS INTEGER) + 1) AND s.role = 'OUTPUT' AND length(s.lot) = :width
) - COALESCE(o.others, 0), CASE WHEN o.others > 0 THEN 1 ELSE 0 END
FROM {each keys text AS k}
LEFT JOIN (
    SELECT left(s.lot, CAST(:head AS INTEGER)) AS head, COUNT(*) AS others
    FROM lot_status s
    WHERE s.dataset_id = :dataset_id AND s.lot >= :first AND s.lot <= :last AND s.role = 'OUTPUT' AND s.status <> 'READY'
      AND length(s.lot) = :width AND substr(s.lot, 9, length(:interval)) = :interval
    GROUP BY left(s.lot, CAST(:head AS INTEGER))
) o ON o.head = left(k.value, CAST(:head AS INTEGER));

-- name: count_odd_manifests
-- Differs by necessity: SQLite would start with all lots. Count the READY lots of each stretch
-- whose manifest is not complete, by its state.
SELECT k.value, o.state, o.odd
FROM {each keys text AS k}
JOIN (
    SELECT left(m.lot, CAST(:head AS INTEGER)) AS head, m.state, COUNT(*) AS odd
    FROM lot_manifests m
    JOIN lot_status s ON s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT'
        AND s.version_id = m.version_id AND s.status = 'READY'
    WHERE m.dataset_id = :dataset_id AND m.lot >= :first AND m.lot <= :last AND m.state <> 'complete'
      AND length(m.lot) = :width AND substr(m.lot, 9, length(:interval)) = :interval
    GROUP BY left(m.lot, CAST(:head AS INTEGER)), m.state
) o ON o.head = left(k.value, CAST(:head AS INTEGER));

-- name: known_lots
-- Differs by necessity: the function that joins texts has another name. List the known lots of
-- each stretch, as one text.
SELECT k.value, (
    SELECT string_agg(s.lot, '') FROM lot_status s
    WHERE s.dataset_id = :dataset_id AND s.lot >= substr(k.value, 1, CAST(:width AS INTEGER))
      AND s.lot <= substr(k.value, CAST(:width AS INTEGER) + 1) AND s.role = 'OUTPUT' AND length(s.lot) = :width
)
FROM {each keys text AS k};

-- name: count_other_lots
-- Differs by necessity: SQLite has no LATERAL. Count the known lots of each stretch that are not
-- READY, by status, result, maker, and whether a person holds them.
SELECT k.value, s.status, CASE WHEN m.state IS NOT NULL THEN 'removed' WHEN w.tries > 0 THEN 'tried' ELSE '' END, s.job_id, CASE WHEN s.held_from <> '' THEN 1 ELSE 0 END, COUNT(*)
FROM {each keys text AS k}
CROSS JOIN LATERAL (
    SELECT s.lot, s.status, s.job_id, s.held_from, s.run_id, s.version_id FROM lot_status s
    WHERE s.dataset_id = :dataset_id AND s.lot >= substr(k.value, 1, CAST(:width AS INTEGER)) AND s.lot <= substr(k.value, CAST(:width AS INTEGER) + 1)
      AND s.role = 'OUTPUT' AND s.status <> 'READY' AND length(s.lot) = :width
    OFFSET 0
) s
LEFT JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot
LEFT JOIN lot_manifests m ON m.dataset_id = :dataset_id AND m.lot = s.lot AND m.version_id = s.version_id
    AND m.state <> 'complete' AND m.state = 'removed' AND s.status = 'ERROR' AND s.run_id IS NULL
GROUP BY k.value, s.status, CASE WHEN m.state IS NOT NULL THEN 'removed' WHEN w.tries > 0 THEN 'tried' ELSE '' END, s.job_id, CASE WHEN s.held_from <> '' THEN 1 ELSE 0 END;

-- name: count_awaited_lots
-- Differs by necessity: SQLite has no LATERAL. Count the lots of each stretch that no job has
-- begun, although jobs know them, and the held lots among them.
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

-- name: other_lots
-- Differs by necessity: SQLite has no LATERAL. List the known lots of stretches that are not
-- READY, with status, result, maker, and whether a person holds them.
SELECT s.lot, s.status, CASE WHEN m.state IS NOT NULL THEN 'removed' WHEN w.tries > 0 THEN 'tried' ELSE '' END, s.job_id, CASE WHEN s.held_from <> '' THEN 1 ELSE 0 END
FROM {each keys text AS k}
CROSS JOIN LATERAL (
    SELECT s.lot, s.status, s.job_id, s.held_from, s.run_id, s.version_id FROM lot_status s
    WHERE s.dataset_id = :dataset_id AND s.lot >= substr(k.value, 1, CAST(:width AS INTEGER)) AND s.lot <= substr(k.value, CAST(:width AS INTEGER) + 1)
      AND s.role = 'OUTPUT' AND s.status <> 'READY' AND length(s.lot) = :width
    OFFSET 0
) s
LEFT JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot
LEFT JOIN lot_manifests m ON m.dataset_id = :dataset_id AND m.lot = s.lot AND m.version_id = s.version_id
    AND m.state <> 'complete' AND m.state = 'removed' AND s.status = 'ERROR' AND s.run_id IS NULL;

-- name: awaited_lots
-- Differs by necessity: SQLite has no LATERAL. List the unfinished work of jobs on lots of
-- stretches.
SELECT w.lot, w.state
FROM {each keys text AS k}
CROSS JOIN {each jobs uuid AS j}
CROSS JOIN LATERAL (
    SELECT w.lot, w.state FROM lot_work w
    WHERE w.job_id = j.value AND w.lot >= substr(k.value, 1, CAST(:width AS INTEGER)) AND w.lot <= substr(k.value, CAST(:width AS INTEGER) + 1)
      AND w.state <> 'DONE' AND length(w.lot) = :width
    OFFSET 0
) w;
