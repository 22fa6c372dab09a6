-- Reported batches as lots.

-- name: batch_lots_by_ids
-- Find the lots of these batches.
SELECT {columns batch_lots b}
FROM {each ids text AS k} JOIN batch_lots b ON b.batch_id = k.value;

-- name: put_batch_lots
-- Write the lots of batches.
{upsert batch_lots, keep collection, submitter};

-- name: batch_lots_of_lot
-- Find the batches of a lot, oldest first.
SELECT {columns batch_lots}
FROM batch_lots
WHERE dataset_id = :dataset_id AND lot = :lot
ORDER BY batch_id;

-- name: due_batch_lots
-- Find lots of intervals that are over, with batches that are not published in them.
SELECT DISTINCT b.dataset_id, b.lot, d.namespace, d.name
FROM batch_lots b JOIN datasets d ON d.id = b.dataset_id
WHERE b.due_at > 0 AND b.due_at <= :now
ORDER BY b.lot
LIMIT :most;
