-- Deletion of the old history of lots.

-- name: oldest_lot_log
-- List the first entries after one: its time, its run if that is known, and whether it explains
-- a fact that still holds, such as a registered lot or a hold.
SELECT g.id, g.at, r.id, CASE
    WHEN w.state = 'HELD' OR s.status = 'HOLD' THEN 1
    WHEN g.action IN ('register', 'announce') AND s.status IS NOT NULL THEN 1
    ELSE 0 END
FROM (
    SELECT l.id, l.at, l.action, l.lot, l.job_id, l.dataset_id, l.run_id
    FROM lot_log l WHERE l.id > :after ORDER BY l.id LIMIT :most
) g
LEFT JOIN runs r ON r.id = g.run_id
LEFT JOIN lot_work w ON w.job_id = g.job_id AND w.lot = g.lot
LEFT JOIN lot_status s ON s.dataset_id = g.dataset_id AND s.lot = g.lot AND s.role = 'OUTPUT'
ORDER BY g.id;

-- name: forget_lot_log
-- Delete entries.
DELETE FROM lot_log WHERE id {in ids bigint};
