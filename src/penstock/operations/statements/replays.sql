-- Replays and their steps.

-- name: replays_by_ids
-- Find replays by their ids.
SELECT {columns replays r}
FROM {each ids uuid AS k} JOIN replays r ON r.id = k.value;

-- name: last_replays
-- List the replays of a namespace, or of all if it is not given, newest first.
SELECT {columns replays r}
FROM replays r
WHERE CAST(:namespace AS text) = '' OR r.namespace = :namespace
ORDER BY r.created_at DESC
LIMIT :most;

-- name: open_replays
-- List the replays with steps that have to start or have not ended, oldest first.
SELECT r.id FROM replays r WHERE r.is_open = 1 ORDER BY r.created_at;

-- name: put_replays
-- Write replays.
{upsert replays, keep namespace, target, max_running, who, why, created_at};

-- name: replay_steps_by_numbers
-- Find steps of a replay by their numbers.
SELECT {columns replay_steps s}
FROM replay_steps s
WHERE s.replay_id = :replay_id AND s.number {in numbers bigint};

-- name: replay_steps_of_work
-- Find the steps of a replay by their work; a key is a job's id and a lot.
SELECT {columns replay_steps s}
FROM {each keys text AS k}
JOIN replay_steps s ON s.replay_id = :replay_id AND s.job_id = CAST(substr(k.value, 1, 36) AS UUID)
    AND s.lot = substr(k.value, 37);

-- name: replay_steps_in_state
-- List the steps of a replay in a state, in order.
SELECT {columns replay_steps s}
FROM replay_steps s
WHERE s.replay_id = :replay_id AND s.state = :state
ORDER BY s.number
LIMIT :most;

-- name: next_replay_steps
-- List the steps of a replay that wait for no other step, in order; the last examined come last.
SELECT s.number
FROM replay_steps s
WHERE s.replay_id = :replay_id AND s.state = 'pending' AND s.waits_for = 0
ORDER BY s.at, s.number
LIMIT :most;

-- name: replay_steps_after
-- Find the steps that wait for these.
SELECT e.later
FROM replay_edges e
WHERE e.replay_id = :replay_id AND e.earlier {in numbers bigint};

-- name: put_replay_steps
-- Write steps of replays.
{upsert replay_steps, keep job_id, lot, depth, micros};

-- name: put_replay_edges
-- Write the order of steps.
{upsert replay_edges};

-- name: read_replay_steps
-- Read a page of the steps of a replay, in order, with the names of their jobs and their work.
SELECT s.number, j.namespace, j.name, s.lot, s.depth, s.state, s.run_before, s.run_id, s.micros, s.note, s.at, w.state
FROM replay_steps s
JOIN jobs j ON j.id = s.job_id
LEFT JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot
WHERE s.replay_id = :replay_id AND s.number >= :first
ORDER BY s.number
LIMIT :most;

-- name: read_replay_steps_in_state
-- Read a page of the steps of a replay in a state, in order.
SELECT s.number, j.namespace, j.name, s.lot, s.depth, s.state, s.run_before, s.run_id, s.micros, s.note, s.at, w.state
FROM replay_steps s
JOIN jobs j ON j.id = s.job_id
LEFT JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot
WHERE s.replay_id = :replay_id AND s.state = :state AND s.number >= :first
ORDER BY s.number
LIMIT :most;

-- name: ended_replays
-- List the replays that ended before a time, oldest first, after one of them.
SELECT r.created_at, r.id
FROM replays r
WHERE r.created_at < :before AND (r.created_at, r.id) > (:created_at, :id)
  AND r.is_open = 0 AND r.since < :before
ORDER BY r.created_at, r.id
LIMIT :most;

-- name: some_replay_steps
-- List the first steps of a replay.
SELECT s.number FROM replay_steps s WHERE s.replay_id = :replay_id ORDER BY s.number LIMIT :most;

-- name: forget_replay_edges
-- Delete the order of steps of a replay.
DELETE FROM replay_edges WHERE replay_id = :replay_id AND earlier {in numbers bigint};

-- name: forget_replay_steps
-- Delete steps of a replay.
DELETE FROM replay_steps WHERE replay_id = :replay_id AND number {in numbers bigint};

-- name: forget_replay
-- Delete a replay.
DELETE FROM replays WHERE id = :replay_id;
