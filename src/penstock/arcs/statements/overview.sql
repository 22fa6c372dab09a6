-- Where arcs stand with their lots.

-- name: arc_counts
-- How many lots of arcs are in which state; of each kind so many are counted, and of those that
-- are done, those among the first :lots that the arc knows, because nothing lists them by state.
-- Lots that were tried are told by what became of their last run: one that made them left them made,
-- whoever holds them since.
SELECT k.value,
    (SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = k.value AND w.state = 'READY' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = k.value AND w.state = 'WAITING' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = k.value AND w.state = 'LATER' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = k.value AND w.state = 'HELD' LIMIT :most) a),
    (
        SELECT COUNT(*)
        FROM (SELECT 1 FROM lot_work w WHERE w.job_id = k.value AND w.tries > 0 AND w.state <> 'DONE' AND w.state <> 'RUNNING' LIMIT :most) a
    ),
    (
        SELECT COUNT(*)
        FROM (
            SELECT w.run_id FROM lot_work w
            WHERE w.job_id = k.value AND w.tries > 0 AND w.state <> 'DONE' AND w.state <> 'RUNNING'
            LIMIT :most
        ) a
        WHERE EXISTS (SELECT 1 FROM runs r WHERE r.id = a.run_id AND r.state = 'COMPLETED')
    ),
    (
        SELECT COUNT(*)
        FROM (
            SELECT w.lot, w.run_id FROM lot_work w
            WHERE w.job_id = k.value AND w.tries > 0 AND w.state <> 'DONE' AND w.state <> 'RUNNING'
            LIMIT :most
        ) a
        WHERE EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = k.value AND t.lot = a.lot)
            AND NOT EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = k.value AND t.lot = a.lot AND t.state = 'partial')
            AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = a.run_id AND r.state = 'COMPLETED')
    ),
    (SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = k.value AND w.unmade = 1 AND w.state = 'DONE' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT w.state, w.unmade FROM lot_work w WHERE w.job_id = k.value ORDER BY w.lot LIMIT :lots) a WHERE a.state = 'DONE' AND a.unmade = 0),
    (SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = k.value ORDER BY w.lot LIMIT :lots) a)
FROM {each ids uuid AS k};

-- name: arc_lots_after
-- A page of the lots of an arc, by lot.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after
ORDER BY w.lot
LIMIT :most;

-- name: gated_lots
-- Which of these lots a job has made, and failed a check in what they have now.
SELECT DISTINCT m.lot
FROM {each outputs uuid AS d}
JOIN lot_manifests m ON m.dataset_id = d.value AND m.lot {in lots text} AND m.state = 'partial'
JOIN lot_status s ON s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT'
    AND s.version_id = m.version_id AND s.job_id = :job_id;

-- name: count_gated_lots
-- How many lots of these outputs were made, by job, and failed a check in what they have now.
SELECT a.job_id, COUNT(*)
FROM (
    SELECT DISTINCT s.job_id, s.lot
    FROM {each outputs uuid AS d}
    JOIN lot_manifests m ON m.dataset_id = d.value AND m.state = 'partial'
    JOIN lot_status s ON s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT' AND s.version_id = m.version_id
    JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot
    WHERE (w.state = 'DONE' AND w.unmade = 0 OR w.state = 'HELD' AND w.tries > 0 AND EXISTS (SELECT 1 FROM runs r WHERE r.id = w.run_id AND r.state = 'COMPLETED'))
    LIMIT :most
) a
GROUP BY a.job_id;

-- name: done_arc_lots_after
-- A page of the lots that an arc has made, by lot, but for those that failed a check.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after
    AND (w.state = 'DONE' AND w.unmade = 0 OR w.state = 'HELD' AND w.tries > 0 AND EXISTS (SELECT 1 FROM runs r WHERE r.id = w.run_id AND r.state = 'COMPLETED'))
    AND NOT EXISTS (
        SELECT 1
        FROM lot_manifests m
        JOIN lot_status s ON s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT'
            AND s.version_id = m.version_id AND s.job_id = w.job_id
        WHERE m.dataset_id {in outputs uuid} AND m.lot = w.lot AND m.state = 'partial'
    )
ORDER BY w.lot
LIMIT :most;

-- name: running_arc_lots_after
-- A page of the lots that an arc is working on, by lot; all live claims are looked at.
SELECT c.job_id, c.lot, c.lot_key, c.rank, c.state, c.tries, c.token, c.run_id, c.owner, c.lease_seconds, c.lease_until, c.not_before, c.since, c.error, c.stale_since, c.unmade
FROM running_work c
WHERE c.job_id = :job_id AND c.lot > :after
ORDER BY c.lot
LIMIT :most;

-- name: partial_arc_lots_after
-- A page of the lots whose failed attempts left something, or may have, and of those that were made
-- and failed a check.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM {each outputs uuid AS d}
JOIN lot_manifests m ON m.dataset_id = d.value AND m.lot > :after AND m.state = 'partial'
JOIN lot_status s ON s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT'
    AND s.version_id = m.version_id AND s.job_id = :job_id
JOIN lot_work w ON w.job_id = :job_id AND w.lot = m.lot
WHERE (w.state = 'DONE' AND w.unmade = 0 OR w.state = 'HELD' AND w.tries > 0 AND EXISTS (SELECT 1 FROM runs r WHERE r.id = w.run_id AND r.state = 'COMPLETED'))
UNION
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after AND w.tries > 0 AND w.state <> 'DONE' AND w.state <> 'RUNNING'
    AND (
        NOT EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = :job_id AND t.lot = w.lot)
        OR EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = :job_id AND t.lot = w.lot AND t.state = 'partial')
    )
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = w.run_id AND r.state = 'COMPLETED')
ORDER BY lot
LIMIT :most;

-- name: missing_arc_lots_after
-- A page of the lots that failed, and whose leftovers were removed, and of those that an output
-- lacks which the arc was given since.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after AND w.unmade = 1 AND w.state = 'DONE'
UNION ALL
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after AND w.tries > 0 AND w.state <> 'DONE' AND w.state <> 'RUNNING'
    AND EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = :job_id AND t.lot = w.lot)
    AND NOT EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = :job_id AND t.lot = w.lot AND t.state = 'partial')
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = w.run_id AND r.state = 'COMPLETED')
ORDER BY lot
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
