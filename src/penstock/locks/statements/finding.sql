-- Lots by their ids.

-- name: find_lots
-- Find the lots of visible datasets whose ids are between two texts, in a namespace or in all.
-- With a namespace, only the first :most lots are searched.
SELECT d.namespace, d.name, f.lot, f.status
FROM (
    SELECT s.lot, s.dataset_id, s.status FROM lot_status s
    WHERE s.role = 'OUTPUT' AND s.lot >= :first AND s.lot <= :last
    ORDER BY s.lot, s.dataset_id LIMIT :most
) f
JOIN datasets d ON d.id = f.dataset_id
WHERE d.hidden = 0 AND (CAST(:namespace AS TEXT) IS NULL OR d.namespace = :namespace)
ORDER BY f.lot, d.namespace, d.name LIMIT :limit;
