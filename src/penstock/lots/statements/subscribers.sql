-- Who is told of what happens to lots, and what there is to tell.

-- name: all_subscribers
-- Every subscriber, by name.
SELECT s.name, s.kind, s.url, s.secret, s.namespace, s.dataset, s.cursor, s.token, s.owner,
       s.lease_until, s.failures, s.next_try_at, s.error, s.failed_at, s.delivered_at,
       s.created_at, s.updated_at
FROM subscribers s
ORDER BY s.name;

-- name: subscribers_by_names
-- Subscribers.
SELECT s.name, s.kind, s.url, s.secret, s.namespace, s.dataset, s.cursor, s.token, s.owner,
       s.lease_until, s.failures, s.next_try_at, s.error, s.failed_at, s.delivered_at,
       s.created_at, s.updated_at
FROM {each names text AS k} JOIN subscribers s ON s.name = k.value;

-- name: put_subscribers
-- Write subscribers.
INSERT INTO subscribers (name, kind, url, secret, namespace, dataset, cursor, token, owner,
    lease_until, failures, next_try_at, error, failed_at, delivered_at, created_at, updated_at)
{rows name text, kind text, url text, secret text, namespace text, dataset text, cursor bigint, token bigint, owner text, lease_until bigint, failures bigint, next_try_at bigint, error text, failed_at bigint, delivered_at bigint, created_at bigint, updated_at bigint}
ON CONFLICT (name) DO UPDATE SET
    kind = excluded.kind,
    url = excluded.url,
    secret = excluded.secret,
    namespace = excluded.namespace,
    dataset = excluded.dataset,
    cursor = excluded.cursor,
    token = excluded.token,
    owner = excluded.owner,
    lease_until = excluded.lease_until,
    failures = excluded.failures,
    next_try_at = excluded.next_try_at,
    error = excluded.error,
    failed_at = excluded.failed_at,
    delivered_at = excluded.delivered_at,
    updated_at = excluded.updated_at;

-- name: forget_subscribers
-- Delete subscribers.
DELETE FROM subscribers WHERE name IN (SELECT gone.name FROM ({rows name text}) AS gone);

-- name: add_run_ends
-- Tell that runs of ours have ended.
INSERT INTO run_ends (at, run_id)
{rows at bigint, run_id uuid};

-- name: run_ends_after
-- Runs of ours that have ended, in the order in which that was committed.
SELECT e.id, e.at, e.run_id FROM run_ends e WHERE e.id > :after ORDER BY e.id LIMIT :most;

-- name: last_run_end
-- The id of the last end of a run.
SELECT e.id FROM run_ends e ORDER BY e.id DESC LIMIT 1;

-- name: next_lot_event
-- When the first event after one happened.
SELECT e.at FROM lot_events e WHERE e.id > :after ORDER BY e.id LIMIT 1;

-- name: next_run_end
-- When the first run after one ended.
SELECT e.at FROM run_ends e WHERE e.id > :after ORDER BY e.id LIMIT 1;

-- name: oldest_lot_events
-- The ids and times of the first events after one.
SELECT e.id, e.at FROM lot_events e WHERE e.id > :after ORDER BY e.id LIMIT :most;

-- name: oldest_run_ends
-- The ids and times of the first ends of runs after one.
SELECT e.id, e.at FROM run_ends e WHERE e.id > :after ORDER BY e.id LIMIT :most;

-- name: forget_lot_events
-- Delete events up to one.
DELETE FROM lot_events WHERE id <= :upto;

-- name: forget_run_ends
-- Delete ends of runs up to one.
DELETE FROM run_ends WHERE id <= :upto;

-- name: pruned_upto
-- Up to which event an outbox was pruned.
SELECT p.upto FROM outbox_pruned p WHERE p.outbox = :outbox;

-- name: put_pruned_upto
-- Remember up to which event an outbox was pruned.
INSERT INTO outbox_pruned (outbox, upto) VALUES (:outbox, :upto)
ON CONFLICT (outbox) DO UPDATE SET upto = excluded.upto;
