-- Subscribers, and the outboxes that they follow.

-- name: all_subscribers
-- List all subscribers, by name.
SELECT {columns subscribers s}
FROM subscribers s
ORDER BY s.name;

-- name: subscribers_by_names
-- Find subscribers by name.
SELECT {columns subscribers s}
FROM {each names text AS k} JOIN subscribers s ON s.name = k.value;

-- name: put_subscribers
-- Write subscribers.
{upsert subscribers, keep created_at};

-- name: forget_subscribers
-- Delete subscribers.
DELETE FROM subscribers WHERE name IN (SELECT gone.name FROM ({rows name text}) AS gone);

-- name: add_run_ends
-- Append ended runs to the outbox.
{insert run_ends};

-- name: run_ends_after
-- List ended runs after one of them, in the order of commit.
SELECT {columns run_ends e} FROM run_ends e WHERE e.id > :after ORDER BY e.id LIMIT :most;

-- name: last_run_end
-- Find the id of the last ended run.
SELECT e.id FROM run_ends e ORDER BY e.id DESC LIMIT 1;

-- name: next_lot_event
-- Find the time of the first event after one.
SELECT e.at FROM lot_events e WHERE e.id > :after ORDER BY e.id LIMIT 1;

-- name: next_run_end
-- Find when the first run after one ended.
SELECT e.at FROM run_ends e WHERE e.id > :after ORDER BY e.id LIMIT 1;

-- name: oldest_lot_events
-- List the ids and times of the first events after one.
SELECT e.id, e.at FROM lot_events e WHERE e.id > :after ORDER BY e.id LIMIT :most;

-- name: oldest_run_ends
-- List the ids and times of the first ended runs after one.
SELECT e.id, e.at FROM run_ends e WHERE e.id > :after ORDER BY e.id LIMIT :most;

-- name: forget_lot_events
-- Delete events up to one.
DELETE FROM lot_events WHERE id <= :upto;

-- name: forget_run_ends
-- Delete ended runs up to one.
DELETE FROM run_ends WHERE id <= :upto;

-- name: pruned_upto
-- Find the last pruned event of an outbox.
SELECT p.upto FROM outbox_pruned p WHERE p.outbox = :outbox;

-- name: put_pruned_upto
-- Record the last pruned event of an outbox.
INSERT INTO outbox_pruned (outbox, upto) VALUES (:outbox, :upto)
ON CONFLICT (outbox) DO UPDATE SET upto = excluded.upto;
