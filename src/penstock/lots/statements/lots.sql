-- What datasets consist of, lot by lot.

-- name: lot_datasets_by_ids
-- How the lots of datasets are cut.
SELECT d.dataset_id, d.interval, d.label, d.running_max, d.updated_at
FROM {each ids uuid AS k} JOIN lot_datasets d ON d.dataset_id = k.value;

-- name: put_lot_datasets
-- Write how the lots of datasets are cut.
INSERT INTO lot_datasets (dataset_id, interval, label, running_max, updated_at)
{rows dataset_id uuid, interval text, label text, running_max bigint, updated_at bigint}
ON CONFLICT (dataset_id) DO UPDATE SET
    interval = excluded.interval,
    label = excluded.label,
    running_max = excluded.running_max,
    updated_at = excluded.updated_at;

-- name: lot_landings_by_ids
-- What was met where the objects of datasets arrive.
SELECT l.dataset_id, l.error, l.failed_at, l.untaken, l.example, l.reason
FROM {each ids uuid AS k} JOIN lot_landings l ON l.dataset_id = k.value;

-- name: put_lot_landings
-- Write what was met where the objects of datasets arrive.
INSERT INTO lot_landings (dataset_id, error, failed_at, untaken, example, reason)
{rows dataset_id uuid, error text, failed_at bigint, untaken bigint, example text, reason text}
ON CONFLICT (dataset_id) DO UPDATE SET
    error = excluded.error,
    failed_at = excluded.failed_at,
    untaken = excluded.untaken,
    example = excluded.example,
    reason = excluded.reason;

-- name: forget_lot_landings
-- Forget that the objects of datasets arrive.
DELETE FROM lot_landings WHERE dataset_id IN ({rows dataset_id uuid});

-- name: lot_manifests_by_versions
-- The manifests of versions of lots.
SELECT m.version_id, m.dataset_id, m.lot, m.state, m.key, m.uris, m.bytes, m.digest, m.attempt, m.at
FROM {each ids uuid AS k} JOIN lot_manifests m ON m.version_id = k.value;

-- name: lot_manifests_of_lot
-- The manifests that a lot has had, newest first.
SELECT m.version_id, m.dataset_id, m.lot, m.state, m.key, m.uris, m.bytes, m.digest, m.attempt, m.at
FROM lot_manifests m
WHERE m.dataset_id = :dataset_id AND m.lot = :lot
ORDER BY m.at DESC;

-- name: put_lot_manifests
-- Write manifests of versions of lots.
INSERT INTO lot_manifests (version_id, dataset_id, lot, state, key, uris, bytes, digest, attempt, at)
{rows version_id uuid, dataset_id uuid, lot text, state text, key text, uris bigint, bytes bigint, digest text, attempt text, at bigint}
ON CONFLICT (version_id) DO UPDATE SET
    state = excluded.state,
    key = excluded.key,
    uris = excluded.uris,
    bytes = excluded.bytes,
    digest = excluded.digest,
    attempt = excluded.attempt,
    at = excluded.at;

-- name: add_lot_events
-- Tell of lots.
INSERT INTO lot_events (at, kind, dataset_id, lot, state, version_id, job_id, run_id)
{rows at bigint, kind text, dataset_id uuid, lot text, state text, version_id uuid, job_id uuid, run_id uuid};

-- name: lot_events_after
-- What happened to lots after an event, in the order in which it was committed.
SELECT e.id, e.at, e.kind, d.namespace, d.name, e.lot, e.state, e.version_id, j.namespace, j.name, e.run_id
FROM lot_events e
JOIN datasets d ON d.id = e.dataset_id
LEFT JOIN jobs j ON j.id = e.job_id
WHERE e.id > :after
ORDER BY e.id
LIMIT :most;

-- name: last_lot_event
-- The id of the last event.
SELECT e.id FROM lot_events e ORDER BY e.id DESC LIMIT 1;
