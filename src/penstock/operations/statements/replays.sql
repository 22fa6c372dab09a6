-- Replays and their steps.

-- name: replays_by_ids
-- Replays by their ids.
SELECT r.id, r.namespace, r.target, r.state, r.is_open, r.counts, r.max_running, r.who, r.why, r.ran, r.since, r.created_at
FROM {each ids uuid AS k} JOIN replays r ON r.id = k.value;

-- name: last_replays
-- The last replays of a namespace, or of all where none is named, newest first.
SELECT r.id, r.namespace, r.target, r.state, r.is_open, r.counts, r.max_running, r.who, r.why, r.ran, r.since, r.created_at
FROM replays r
WHERE CAST(:namespace AS text) = '' OR r.namespace = :namespace
ORDER BY r.created_at DESC
LIMIT :most;

-- name: open_replays
-- Replays of which something is to be done or has not ended, oldest first.
SELECT r.id FROM replays r WHERE r.is_open = 1 ORDER BY r.created_at;

-- name: put_replays
-- Write replays.
INSERT INTO replays (id, namespace, target, state, is_open, counts, max_running, who, why, ran, since, created_at)
{rows id uuid, namespace text, target text, state text, is_open bigint, counts text, max_running bigint, who text, why text, ran bigint, since bigint, created_at bigint}
ON CONFLICT (id) DO UPDATE SET
    state = excluded.state,
    is_open = excluded.is_open,
    counts = excluded.counts,
    ran = excluded.ran,
    since = excluded.since;

-- name: replay_steps_by_numbers
-- Steps of a replay by their numbers.
SELECT s.replay_id, s.number, s.job_id, s.lot, s.depth, s.state, s.waits_for, s.run_before, s.run_id, s.micros, s.note, s.at
FROM replay_steps s
WHERE s.replay_id = :replay_id AND s.number {in numbers bigint};

-- name: replay_steps_of_work
-- The steps of a replay that are these; a key is a job's id and a lot.
SELECT s.replay_id, s.number, s.job_id, s.lot, s.depth, s.state, s.waits_for, s.run_before, s.run_id, s.micros, s.note, s.at
FROM {each keys text AS k}
JOIN replay_steps s ON s.replay_id = :replay_id AND s.job_id = CAST(substr(k.value, 1, 36) AS UUID)
    AND s.lot = substr(k.value, 37);

-- name: replay_steps_in_state
-- Steps of a replay that are in a state, in order.
SELECT s.replay_id, s.number, s.job_id, s.lot, s.depth, s.state, s.waits_for, s.run_before, s.run_id, s.micros, s.note, s.at
FROM replay_steps s
WHERE s.replay_id = :replay_id AND s.state = :state
ORDER BY s.number
LIMIT :most;

-- name: next_replay_steps
-- Steps of a replay that wait for no other, in order; those that were looked at last come last.
SELECT s.number
FROM replay_steps s
WHERE s.replay_id = :replay_id AND s.state = 'pending' AND s.waits_for = 0
ORDER BY s.at, s.number
LIMIT :most;

-- name: replay_steps_after
-- The steps that wait for these.
SELECT e.later
FROM replay_edges e
WHERE e.replay_id = :replay_id AND e.earlier {in numbers bigint};

-- name: put_replay_steps
-- Write steps of replays.
INSERT INTO replay_steps (replay_id, number, job_id, lot, depth, state, waits_for, run_before, run_id, micros, note, at)
{rows replay_id uuid, number bigint, job_id uuid, lot text, depth bigint, state text, waits_for bigint, run_before uuid, run_id uuid, micros bigint, note text, at bigint}
ON CONFLICT (replay_id, number) DO UPDATE SET
    state = excluded.state,
    waits_for = excluded.waits_for,
    run_before = excluded.run_before,
    run_id = excluded.run_id,
    note = excluded.note,
    at = excluded.at;

-- name: put_replay_edges
-- Write which step has to be done before which.
INSERT INTO replay_edges (replay_id, earlier, later)
{rows replay_id uuid, earlier bigint, later bigint}
ON CONFLICT (replay_id, earlier, later) DO NOTHING;

-- name: read_replay_steps
-- A page of the steps of a replay, in order, with what their jobs are called and how far those are.
SELECT s.number, j.namespace, j.name, s.lot, s.depth, s.state, s.run_before, s.run_id, s.micros, s.note, s.at, w.state
FROM replay_steps s
JOIN jobs j ON j.id = s.job_id
LEFT JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot
WHERE s.replay_id = :replay_id AND s.number >= :first
ORDER BY s.number
LIMIT :most;

-- name: read_replay_steps_in_state
-- A page of the steps of a replay in a state, in order.
SELECT s.number, j.namespace, j.name, s.lot, s.depth, s.state, s.run_before, s.run_id, s.micros, s.note, s.at, w.state
FROM replay_steps s
JOIN jobs j ON j.id = s.job_id
LEFT JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot
WHERE s.replay_id = :replay_id AND s.state = :state AND s.number >= :first
ORDER BY s.number
LIMIT :most;

-- name: ended_replays
-- Replays that ended before a time, oldest first, after one.
SELECT r.created_at, r.id
FROM replays r
WHERE r.created_at < :before AND (r.created_at, r.id) > (:created_at, :id)
  AND r.is_open = 0 AND r.since < :before
ORDER BY r.created_at, r.id
LIMIT :most;

-- name: some_replay_steps
-- The first steps of a replay.
SELECT s.number FROM replay_steps s WHERE s.replay_id = :replay_id ORDER BY s.number LIMIT :most;

-- name: forget_replay_edges
-- Delete what waits for steps of a replay.
DELETE FROM replay_edges WHERE replay_id = :replay_id AND earlier {in numbers bigint};

-- name: forget_replay_steps
-- Delete steps of a replay.
DELETE FROM replay_steps WHERE replay_id = :replay_id AND number {in numbers bigint};

-- name: forget_replay
-- Delete a replay.
DELETE FROM replays WHERE id = :replay_id;
