-- Arrivals and the objects that have arrived.

-- name: arrivals_by_ids
-- Arrivals by the ids of their datasets.
SELECT a.dataset_id, a.namespace, a.name, a.declaration, a.start, a.open_from, a.revision, a.created_at, a.updated_at
FROM {each ids uuid AS k} JOIN arrivals a ON a.dataset_id = k.value;

-- name: arrival_by_name
-- The arrival of a dataset.
SELECT a.dataset_id, a.namespace, a.name, a.declaration, a.start, a.open_from, a.revision, a.created_at, a.updated_at
FROM arrivals a
WHERE a.namespace = :namespace AND a.name = :name;

-- name: all_arrivals
-- Every arrival, by name.
SELECT a.dataset_id, a.namespace, a.name, a.declaration, a.start, a.open_from, a.revision, a.created_at, a.updated_at
FROM arrivals a
ORDER BY a.namespace, a.name;

-- name: put_arrivals
-- Write arrivals.
INSERT INTO arrivals (dataset_id, namespace, name, declaration, start, open_from, revision, created_at, updated_at)
{rows dataset_id uuid, namespace text, name text, declaration text, start bigint, open_from bigint, revision bigint, created_at bigint, updated_at bigint}
ON CONFLICT (dataset_id) DO UPDATE SET
    declaration = excluded.declaration,
    start = excluded.start,
    open_from = excluded.open_from,
    revision = excluded.revision,
    updated_at = excluded.updated_at;

-- name: forget_arrivals
-- Delete arrivals.
DELETE FROM arrivals WHERE dataset_id IN ({rows dataset_id uuid});

-- name: arrived_objects_by_uris
-- What is known of objects.
SELECT o.dataset_id, o.uri, o.lot, o.state, o.size, o.mark, o.refused, o.modified, o.at, o.digest
FROM arrived_objects o
WHERE o.dataset_id = :dataset_id AND o.uri {in uris text};

-- name: arrived_objects_of_lots
-- The objects that lots consist of.
SELECT o.dataset_id, o.uri, o.lot, o.state, o.size, o.mark, o.refused, o.modified, o.at, o.digest
FROM arrived_objects o
WHERE o.dataset_id = :dataset_id AND o.lot {in lots text} AND o.state <> 'refused';

-- name: refused_objects
-- Objects that were refused, or whose change was, by name after a name.
SELECT o.dataset_id, o.uri, o.lot, o.state, o.size, o.mark, o.refused, o.modified, o.at, o.digest
FROM arrived_objects o
WHERE o.dataset_id = :dataset_id AND o.refused <> '' AND o.uri > :after
ORDER BY o.uri
LIMIT :most;

-- name: forget_arrived_of_lot
-- Forget which objects a lot consisted of.
DELETE FROM arrived_objects WHERE dataset_id = :dataset_id AND lot = :lot AND state <> 'refused';

-- name: forget_arrived_objects
-- Forget objects that lots consisted of.
DELETE FROM arrived_objects WHERE (dataset_id, uri) IN ({rows dataset_id uuid, uri text});

-- name: put_arrived_objects
-- Write which lots objects are in.
INSERT INTO arrived_objects (dataset_id, uri, lot, state, size, mark, refused, modified, at, digest)
{rows dataset_id uuid, uri text, lot text, state text, size bigint, mark text, refused text, modified bigint, at bigint, digest text}
ON CONFLICT (dataset_id, uri) DO UPDATE SET
    lot = excluded.lot,
    state = excluded.state,
    size = excluded.size,
    mark = excluded.mark,
    refused = excluded.refused,
    modified = excluded.modified,
    at = excluded.at,
    digest = excluded.digest;
