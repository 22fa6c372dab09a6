-- Lots whose keys in the object store may not follow the database.

-- name: put_unsettled_keys
-- Note that the keys of lots are to be written.
INSERT INTO unsettled_keys (owner_id, lot, attempt)
{rows owner_id uuid, lot text, attempt uuid}
ON CONFLICT (owner_id, lot) DO UPDATE SET attempt = excluded.attempt;

-- name: forget_unsettled_keys
-- Note that the keys of lots were written, unless another attempt has begun since.
DELETE FROM unsettled_keys
WHERE (owner_id, lot, attempt) IN (SELECT owner_id, lot, attempt FROM ({rows owner_id uuid, lot text, attempt uuid}) r);

-- name: manifests_of_lots
-- The manifests that lots of a dataset have had.
SELECT m.version_id, m.dataset_id, m.lot, m.state, m.key, m.uris, m.bytes, m.digest, m.attempt, m.at
FROM lot_manifests m
WHERE m.dataset_id = :dataset_id AND m.lot {in lots text};

-- name: unsettled_keys_after
-- Lots whose keys are to be written and that nobody works on; those that somebody does are few.
SELECT u.owner_id, u.lot, u.attempt
FROM unsettled_keys u
LEFT JOIN lot_work w ON w.job_id = u.owner_id AND w.lot = u.lot
WHERE (u.owner_id, u.lot) > (:owner_id, :lot) AND (w.state IS NULL OR w.state <> 'RUNNING')
ORDER BY u.owner_id, u.lot
LIMIT :most;
