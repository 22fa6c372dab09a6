-- The states of arcs and their lots.

-- name: arc_counts
-- Count the lots of arcs by state, up to a limit for each kind. Complete lots are counted among
-- the first :lots of the arc, because no index has them by state. The state of a lot that was
-- tried follows from its last run: after a successful run the lot is complete, also while it is
-- held.
SELECT k.value,
    (SELECT COUNT(*) FROM (SELECT 1 FROM lot_work w WHERE w.job_id = k.value AND w.state = 'READY' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = k.value AND w.state = 'WAITING' LIMIT :most) a),
    (SELECT COUNT(*) FROM (SELECT 1 FROM stuck_work w WHERE w.job_id = k.value AND w.state = 'RETRYABLE' LIMIT :most) a),
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
-- Read a page of the lots of an arc, by lot.
SELECT {columns lot_work w}
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after
ORDER BY w.lot
LIMIT :most;

-- name: gated_lots
-- Find the lots that a job has made and whose current version failed a check.
SELECT DISTINCT m.lot
FROM {each outputs uuid AS d}
JOIN lot_manifests m ON m.dataset_id = d.value AND m.lot {in lots text} AND m.state = 'partial'
JOIN lot_status s ON s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT'
    AND s.version_id = m.version_id AND s.job_id = :job_id;

-- name: count_gated_lots
-- Count, by job, the lots of these outputs whose current version failed a check.
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
-- Read a page of the complete lots of an arc, by lot, without those that failed a check.
SELECT {columns lot_work w}
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
-- Read a page of the running lots of an arc, by lot; all live claims are read.
SELECT {columns lot_work c}
FROM running_work c
WHERE c.job_id = :job_id AND c.lot > :after
ORDER BY c.lot
LIMIT :most;

-- name: partial_arc_lots_after
-- Read a page of the lots whose failed attempts may have left data behind, and of the lots that
-- were made and failed a check.
SELECT {columns lot_work w}
FROM {each outputs uuid AS d}
JOIN lot_manifests m ON m.dataset_id = d.value AND m.lot > :after AND m.state = 'partial'
JOIN lot_status s ON s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT'
    AND s.version_id = m.version_id AND s.job_id = :job_id
JOIN lot_work w ON w.job_id = :job_id AND w.lot = m.lot
WHERE (w.state = 'DONE' AND w.unmade = 0 OR w.state = 'HELD' AND w.tries > 0 AND EXISTS (SELECT 1 FROM runs r WHERE r.id = w.run_id AND r.state = 'COMPLETED'))
UNION
SELECT {columns lot_work w}
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
-- Read a page of the failed lots whose leftovers were removed, and of the lots that a new output
-- lacks.
SELECT {columns lot_work w}
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after AND w.unmade = 1 AND w.state = 'DONE'
UNION ALL
SELECT {columns lot_work w}
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after AND w.tries > 0 AND w.state <> 'DONE' AND w.state <> 'RUNNING'
    AND EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = :job_id AND t.lot = w.lot)
    AND NOT EXISTS (SELECT 1 FROM arc_attempts t WHERE t.job_id = :job_id AND t.lot = w.lot AND t.state = 'partial')
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = w.run_id AND r.state = 'COMPLETED')
ORDER BY lot
LIMIT :most;

-- name: attempts_on_lots
-- Find the failed attempts of an arc on lots.
SELECT {columns arc_attempts a}
FROM {each lots text AS k} JOIN arc_attempts a ON a.job_id = :job_id AND a.lot = k.value;

-- name: arcs_with_ready_lots
-- Find the arcs with a ready lot.
SELECT k.value FROM {each ids uuid AS k}
WHERE EXISTS (SELECT 1 FROM lot_work w WHERE w.job_id = k.value AND w.state = 'READY');

-- name: soonest_retry
-- Find when the next failed lot is tried again.
SELECT w.not_before FROM lot_work w WHERE w.state = 'RETRYABLE' ORDER BY w.not_before LIMIT 1;
