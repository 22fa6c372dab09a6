-- Where arcs stand with their lots.

-- name: arc_counts
-- How many lots of arcs are in which state; of each kind so many are counted, and of those that
-- are done, those among the first :lots that the arc knows, because nothing lists them by state.
SELECT k.value,
    (SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = k.value AND w.state = 'READY' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = k.value AND w.state = 'WAITING' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = k.value AND w.state = 'LATER' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = k.value AND w.state = 'HELD' LIMIT :most) a),
    (
        SELECT COUNT(*)
        FROM (
            SELECT w.lot FROM lot_work w
            WHERE w.job_id = k.value AND w.tries > 0 AND w.state <> 'DONE' AND w.state <> 'RUNNING'
            LIMIT :most
        ) a
    ),
    (
        SELECT COUNT(*)
        FROM (
            SELECT w.lot FROM lot_work w
            WHERE w.job_id = k.value AND w.tries > 0 AND w.state <> 'DONE' AND w.state <> 'RUNNING'
            LIMIT :most
        ) a
        WHERE EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = k.value AND t.lot = a.lot)
            AND NOT EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = k.value AND t.lot = a.lot AND t.state = 'partial')
    ),
    (SELECT COUNT(*) FROM (SELECT w.state FROM lot_work w WHERE w.job_id = k.value ORDER BY w.lot LIMIT :lots) a WHERE a.state = 'DONE'),
    (SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = k.value ORDER BY w.lot LIMIT :lots) a)
FROM {each ids uuid AS k};

-- name: arc_lots_after
-- A page of the lots of an arc, by lot.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after
ORDER BY w.lot
LIMIT :most;

-- name: done_arc_lots_after
-- A page of the lots that an arc has made, by lot.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after AND w.state = 'DONE'
ORDER BY w.lot
LIMIT :most;

-- name: running_arc_lots_after
-- A page of the lots that an arc is working on, by lot; there are as many as live claims.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after AND w.state = 'RUNNING'
ORDER BY w.lot
LIMIT :most;

-- name: partial_arc_lots_after
-- A page of the lots whose failed attempts left something, or may have.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after AND w.tries > 0 AND w.state <> 'DONE' AND w.state <> 'RUNNING'
    AND (
        NOT EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = :job_id AND t.lot = w.lot)
        OR EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = :job_id AND t.lot = w.lot AND t.state = 'partial')
    )
ORDER BY w.lot
LIMIT :most;

-- name: missing_arc_lots_after
-- A page of the lots that failed, and whose leftovers were removed.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after AND w.tries > 0 AND w.state <> 'DONE' AND w.state <> 'RUNNING'
    AND EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = :job_id AND t.lot = w.lot)
    AND NOT EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = :job_id AND t.lot = w.lot AND t.state = 'partial')
ORDER BY w.lot
LIMIT :most;

-- name: attempts_on_lots
-- The failed attempts of an arc on lots.
SELECT a.run_id, a.job_id, a.lot, a.state, a.keys, a.at
FROM {each lots text AS k} JOIN arc_attempts a ON a.job_id = :job_id AND a.lot = k.value;

-- name: arcs_with_ready_lots
-- Which of these arcs have a lot that is ready.
SELECT k.value FROM {each ids uuid AS k}
WHERE EXISTS (SELECT 1 FROM lot_work w WHERE w.job_id = k.value AND w.state = 'READY');

-- name: soonest_retry
-- When the first lot that failed is tried again.
SELECT w.not_before FROM lot_work w WHERE w.state = 'LATER' ORDER BY w.not_before LIMIT 1;
