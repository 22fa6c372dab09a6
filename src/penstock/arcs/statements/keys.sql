-- Lots whose keys in the object store may lag behind the database.

-- name: put_unsettled_keys
-- Record that the keys of lots must be written.
{upsert unsettled_keys};

-- name: forget_unsettled_keys
-- Record that the keys of lots were written, unless another attempt has begun since.
DELETE FROM unsettled_keys
WHERE (owner_id, lot, attempt) IN (SELECT owner_id, lot, attempt FROM ({rows owner_id uuid, lot text, attempt uuid}) r);

-- name: manifests_of_lots
-- Find all manifests of lots of a dataset.
SELECT {columns lot_manifests m}
FROM lot_manifests m
WHERE m.dataset_id = :dataset_id AND m.lot {in lots text};

-- name: unsettled_keys_after
-- List lots whose keys must be written and that no worker has; lots of workers are few.
SELECT {columns unsettled_keys u}
FROM unsettled_keys u
LEFT JOIN lot_work w ON w.job_id = u.owner_id AND w.lot = u.lot
WHERE (u.owner_id, u.lot) > (:owner_id, :lot) AND (w.state IS NULL OR w.state <> 'RUNNING')
ORDER BY u.owner_id, u.lot
LIMIT :most;
