-- Arrivals and their objects.

-- name: arrivals_by_ids
-- Find arrivals by the ids of their datasets.
SELECT {columns arrivals a}
FROM {each ids uuid AS k} JOIN arrivals a ON a.dataset_id = k.value;

-- name: arrival_by_name
-- Find the arrival of a dataset.
SELECT {columns arrivals a}
FROM arrivals a
WHERE a.namespace = :namespace AND a.name = :name;

-- name: all_arrivals
-- List all arrivals, by name.
SELECT {columns arrivals a}
FROM arrivals a
ORDER BY a.namespace, a.name;

-- name: put_arrivals
-- Write arrivals.
{upsert arrivals, keep namespace, name, created_at};

-- name: forget_arrivals
-- Delete arrivals.
DELETE FROM arrivals WHERE dataset_id IN ({rows dataset_id uuid});

-- name: arrived_objects_by_uris
-- Find objects by their URIs.
SELECT {columns arrived_objects o}
FROM arrived_objects o
WHERE o.dataset_id = :dataset_id AND o.uri {in uris text};

-- name: arrived_objects_of_lots
-- Find the objects of lots.
SELECT {columns arrived_objects o}
FROM arrived_objects o
WHERE o.dataset_id = :dataset_id AND o.lot {in lots text} AND o.state <> 'refused';

-- name: refused_objects
-- List the objects that were refused, or whose change was, by name, after a name.
SELECT {columns arrived_objects o}
FROM arrived_objects o
WHERE o.dataset_id = :dataset_id AND o.refused <> '' AND o.uri > :after
ORDER BY o.uri
LIMIT :most;

-- name: forget_arrived_of_lot
-- Delete the objects of a lot.
DELETE FROM arrived_objects WHERE dataset_id = :dataset_id AND lot = :lot AND state <> 'refused';

-- name: forget_arrived_objects
-- Delete objects of lots.
DELETE FROM arrived_objects WHERE (dataset_id, uri) IN ({rows dataset_id uuid, uri text});

-- name: put_arrived_objects
-- Write the lots of objects.
{upsert arrived_objects};
