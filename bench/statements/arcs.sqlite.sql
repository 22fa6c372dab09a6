-- Very many lots of one dataset: those of one day, again for each of other days. That one day
-- is read once: a table that has just grown is one the planner knows nothing of.

-- name: repeat_status
-- Differs by necessity: ids are text. The status rows of other days.
WITH a_day AS MATERIALIZED (
    SELECT * FROM lot_status s WHERE s.dataset_id = :dataset_id AND s.lot >= :first AND s.lot <= :last AND s.role = 'OUTPUT'
)
INSERT INTO lot_status (dataset_id, lot, role, job_id, status, held_from, run_id, version_id, since)
SELECT s.dataset_id, k.value || substr(s.lot, 9), s.role, s.job_id, s.status, s.held_from, s.run_id, '00000000-0000-4000-' || substr(k.value, 1, 4) || '-' || substr(k.value, 5, 4) || '00000' || substr(s.lot, length(s.lot) - 2), s.since
FROM {each days text AS k} CROSS JOIN a_day s

-- name: repeat_manifests
-- Differs by necessity: ids are text. The manifests of other days.
WITH a_day AS MATERIALIZED (
    SELECT * FROM lot_manifests m WHERE m.dataset_id = :dataset_id AND m.lot >= :first AND m.lot <= :last
)
INSERT INTO lot_manifests (version_id, dataset_id, lot, state, key, uris, bytes, digest, attempt, at)
SELECT '00000000-0000-4000-' || substr(k.value, 1, 4) || '-' || substr(k.value, 5, 4) || '00000' || substr(m.lot, length(m.lot) - 2), m.dataset_id, k.value || substr(m.lot, 9), m.state, m.key, m.uris, m.bytes, m.digest, m.attempt, m.at
FROM {each days text AS k} CROSS JOIN a_day m
