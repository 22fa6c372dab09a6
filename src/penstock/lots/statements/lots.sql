-- The lots of datasets: intervals, manifests and events.

-- name: lot_datasets_by_ids
-- Find the intervals of datasets.
SELECT {columns lot_datasets d}
FROM {each ids uuid AS k} JOIN lot_datasets d ON d.dataset_id = k.value;

-- name: put_lot_datasets
-- Write the intervals of datasets.
{upsert lot_datasets};

-- name: lot_landings_by_ids
-- Find the results of the last scans of arrivals.
SELECT {columns lot_landings l}
FROM {each ids uuid AS k} JOIN lot_landings l ON l.dataset_id = k.value;

-- name: put_lot_landings
-- Write the results of the last scans of arrivals.
{upsert lot_landings};

-- name: forget_lot_landings
-- Delete the scans of arrivals that do not exist any more.
DELETE FROM lot_landings WHERE dataset_id IN ({rows dataset_id uuid});

-- name: lot_manifests_by_versions
-- Find the manifests of versions of lots.
SELECT {columns lot_manifests m}
FROM {each ids uuid AS k} JOIN lot_manifests m ON m.version_id = k.value;

-- name: lot_manifests_of_lot
-- List the manifests of a lot, newest first.
SELECT {columns lot_manifests m}
FROM lot_manifests m
WHERE m.dataset_id = :dataset_id AND m.lot = :lot
ORDER BY m.at DESC;

-- name: put_lot_manifests
-- Write manifests of versions of lots.
{upsert lot_manifests, keep dataset_id, lot};

-- name: add_lot_events
-- Append events of lots to the outbox.
{insert lot_events};

-- name: lot_events_after
-- List the events of lots after one of them, in the order of commit.
SELECT e.id, e.at, e.kind, d.namespace, d.name, e.lot, e.state, e.version_id, j.namespace, j.name, e.run_id
FROM lot_events e
JOIN datasets d ON d.id = e.dataset_id
LEFT JOIN jobs j ON j.id = e.job_id
WHERE e.id > :after
ORDER BY e.id
LIMIT :most;

-- name: last_lot_event
-- Find the id of the last event.
SELECT e.id FROM lot_events e ORDER BY e.id DESC LIMIT 1;
