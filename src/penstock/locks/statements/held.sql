-- name: read_held_lots
-- List the held lots, the last held first: the dataset and the reasons as ids, the maker, who
-- held them last, and why.
SELECT d.namespace, d.name, h.lot, d.id, h.why, s.version_id, s.run_id, j.namespace, j.name, s.since,
    (SELECT g.who FROM lot_log g WHERE g.dataset_id = h.dataset_id AND g.lot = h.lot AND g.action = 'hold' ORDER BY g.id DESC LIMIT 1),
    (SELECT g.why FROM lot_log g WHERE g.dataset_id = h.dataset_id AND g.lot = h.lot AND g.action = 'hold' ORDER BY g.id DESC LIMIT 1)
FROM lot_reasons h
JOIN lot_status s ON s.dataset_id = h.dataset_id AND s.lot = h.lot AND s.role = 'OUTPUT' AND s.status = 'HOLD'
JOIN datasets d ON d.id = h.dataset_id
LEFT JOIN jobs j ON j.id = s.job_id
WHERE :namespace IN ('', d.namespace) AND h.why LIKE :reason
ORDER BY s.since DESC, d.namespace, d.name, h.lot
LIMIT :limit OFFSET :offset;

-- name: count_held_lots
-- Count the held lots, up to a limit.
SELECT COUNT(*) FROM (
    SELECT 1 AS one
    FROM lot_reasons h
    JOIN lot_status s ON s.dataset_id = h.dataset_id AND s.lot = h.lot AND s.role = 'OUTPUT' AND s.status = 'HOLD'
    JOIN datasets d ON d.id = h.dataset_id
    WHERE :namespace IN ('', d.namespace) AND h.why LIKE :reason
    LIMIT :most
) x;

-- name: first_held_lot
-- Find the first held lot of a dataset.
SELECT h.lot FROM lot_reasons h
JOIN lot_status s ON s.dataset_id = h.dataset_id AND s.lot = h.lot AND s.role = 'OUTPUT' AND s.status = 'HOLD'
WHERE h.dataset_id = :dataset_id
ORDER BY h.lot LIMIT 1;
