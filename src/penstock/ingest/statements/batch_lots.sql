-- Reported batches as lots.

-- name: batch_lots_by_ids
-- The lots of these batches.
SELECT b.batch_id, b.collection, b.submitter, b.dataset_id, b.lot, b.report, b.state, b.key, b.uris, b.bytes, b.digest, b.attempt, b.due_at, b.at
FROM {each ids text AS k} JOIN batch_lots b ON b.batch_id = k.value;

-- name: put_batch_lots
-- Write which lots batches are.
INSERT INTO batch_lots (batch_id, collection, submitter, dataset_id, lot, report, state, key, uris, bytes, digest, attempt, due_at, at)
{rows batch_id text, collection text, submitter text, dataset_id uuid, lot text, report bigint, state text, key text, uris bigint, bytes bigint, digest text, attempt text, due_at bigint, at bigint}
ON CONFLICT (batch_id) DO UPDATE SET
    dataset_id = excluded.dataset_id,
    lot = excluded.lot,
    report = excluded.report,
    state = excluded.state,
    key = excluded.key,
    uris = excluded.uris,
    bytes = excluded.bytes,
    digest = excluded.digest,
    attempt = excluded.attempt,
    due_at = excluded.due_at,
    at = excluded.at;

-- name: batch_lots_of_lot
-- The batches that a lot consists of, oldest first.
SELECT batch_id, collection, submitter, dataset_id, lot, report, state, key, uris, bytes, digest, attempt, due_at, at
FROM batch_lots
WHERE dataset_id = :dataset_id AND lot = :lot
ORDER BY batch_id;

-- name: due_batch_lots
-- Lots of intervals that are over, and that have batches which are not published in them.
SELECT DISTINCT b.dataset_id, b.lot, d.namespace, d.name
FROM batch_lots b JOIN datasets d ON d.id = b.dataset_id
WHERE b.due_at > 0 AND b.due_at <= :now
ORDER BY b.lot
LIMIT :most;
