-- Rows that break an invariant; none if all is well. Each statement reads whole tables, in one
-- snapshot and without a lock, and stops after :most rows.

-- name: broken_current_versions
-- Find datasets whose current version was not published, or not by a completed run. A stream
-- publishes its outputs at once, and they stay published when the type of its job changes later
-- (the stamp of the type is eight times its moment).
SELECT d.namespace, d.name, d.current_version_id, COALESCE(r.state, v.origin, 'not there')
FROM datasets d
LEFT JOIN dataset_versions v ON v.id = d.current_version_id AND v.dataset_id = d.id
LEFT JOIN runs r ON r.id = v.run_id
LEFT JOIN jobs j ON j.id = r.job_id
WHERE d.current_version_id IS NOT NULL
  AND (v.id IS NULL OR v.published_at IS NULL
       OR (v.origin = 'RUN' AND r.id IS NULL)
       OR (v.origin = 'RUN' AND r.state <> 'COMPLETED' AND j.type <> 'STREAM'
           AND NOT (v.published_at = v.created_at AND v.published_at < j.type_stamp / 8)))
LIMIT :most

-- name: broken_newest_versions
-- Find datasets whose current version is not the one published last.
SELECT d.namespace, d.name, COALESCE(CAST(d.current_version_id AS TEXT), 'none')
FROM datasets d
LEFT JOIN dataset_versions v ON v.id = d.current_version_id
WHERE (v.id IS NOT NULL AND d.published_at <> v.published_at)
   OR EXISTS (SELECT 1 FROM dataset_versions n
              WHERE n.dataset_id = d.id AND n.published_at IS NOT NULL
                AND (v.id IS NULL OR n.published_at > v.published_at
                     OR (n.published_at = v.published_at AND n.id > v.id)))
LIMIT :most

-- name: broken_pins
-- Find inputs and outputs of runs whose version is not of that dataset, or was not written by
-- that run.
SELECT u.run_id, u.role, u.dataset_id, u.version_id
FROM run_datasets u
LEFT JOIN runs r ON r.id = u.run_id
LEFT JOIN dataset_versions v ON v.id = u.version_id AND v.dataset_id = u.dataset_id
WHERE r.id IS NULL OR v.id IS NULL
   OR (u.role = 'OUTPUT' AND (v.run_id IS NULL OR v.run_id <> u.run_id))
   OR (u.role = 'INPUT' AND v.run_id = u.run_id)
LIMIT :most

-- name: broken_run_counts
-- Find jobs with wrong counts of runs or versions.
SELECT j.namespace, j.name, j.run_count, j.version_count
FROM jobs j
WHERE j.run_count <> (SELECT COUNT(*) FROM runs r WHERE r.job_id = j.id)
   OR j.version_count <> (SELECT COUNT(*) FROM job_versions v WHERE v.job_id = j.id)
LIMIT :most

-- name: broken_version_counts
-- Find datasets with a wrong count of versions, or a wrong latest version.
SELECT d.namespace, d.name, d.version_count, d.latest_number
FROM datasets d
LEFT JOIN dataset_versions v ON v.id = d.latest_version_id AND v.dataset_id = d.id
WHERE d.version_count <> (SELECT COUNT(*) FROM dataset_versions n WHERE n.dataset_id = d.id)
   OR d.latest_number <> (SELECT COALESCE(MAX(n.number), 0) FROM dataset_versions n WHERE n.dataset_id = d.id)
   OR EXISTS (SELECT 1 FROM dataset_versions n
              WHERE n.dataset_id = d.id
                AND (v.id IS NULL OR (n.unconfirmed = 0 AND v.unconfirmed = 1)
                     OR (n.unconfirmed = v.unconfirmed AND n.number > v.number)))
LIMIT :most

-- name: broken_latest_runs
-- Find jobs that show a run that is not their newest, or not its state.
SELECT j.namespace, j.name, COALESCE(CAST(j.latest_run_id AS TEXT), 'none'), j.latest_run_state
FROM jobs j
LEFT JOIN runs r ON r.id = j.latest_run_id
WHERE (j.latest_run_id IS NOT NULL AND (r.id IS NULL OR r.state <> j.latest_run_state))
   OR EXISTS (SELECT 1 FROM runs n
              WHERE n.job_id = j.id
                AND (r.id IS NULL OR n.created_at > r.created_at
                     OR (n.created_at = r.created_at AND n.id > r.id)))
LIMIT :most

-- name: broken_job_versions
-- Find runs with a job version that does not exist, or that was not stated and began after them.
SELECT r.id, j.namespace, j.name, r.job_version_id
FROM runs r
JOIN jobs j ON j.id = r.job_id
LEFT JOIN job_versions v ON v.id = r.job_version_id AND v.job_id = r.job_id
WHERE r.job_version_id IS NOT NULL
  AND (v.id IS NULL OR (v.declared_at IS NULL AND v.created_at > r.created_at))
LIMIT :most

-- name: broken_tallies
-- Find namespaces with wrong counts of visible datasets or jobs, and the right counts.
SELECT c.kind, c.namespace, c.state, COALESCE(t.total, 0), c.total
FROM (SELECT 'DATASET' AS kind, d.namespace, '' AS state, COUNT(*) AS total
      FROM datasets d WHERE d.hidden = 0 GROUP BY d.namespace
      UNION ALL
      SELECT 'JOB', j.namespace, j.latest_run_state, COUNT(*)
      FROM jobs j WHERE j.hidden = 0 GROUP BY j.namespace, j.latest_run_state) c
LEFT JOIN tallies t ON t.kind = c.kind AND t.namespace = c.namespace AND t.state = c.state
WHERE COALESCE(t.total, 0) <> c.total
UNION ALL
SELECT t.kind, t.namespace, t.state, t.total, 0
FROM tallies t
WHERE t.total <> 0
  AND NOT EXISTS (SELECT 1 FROM datasets d
                  WHERE t.kind = 'DATASET' AND d.namespace = t.namespace AND d.hidden = 0)
  AND NOT EXISTS (SELECT 1 FROM jobs j
                  WHERE t.kind = 'JOB' AND j.namespace = t.namespace AND j.hidden = 0
                    AND j.latest_run_state = t.state)
LIMIT :most

-- name: broken_event_counts
-- Find hours with wrong counts of events, and the right counts. Before 1970 a remainder is
-- negative, and an hour still begins before its events.
SELECT c.hour, c.event_type, COALESCE(k.total, 0), c.total
FROM (SELECT t.hour, t.event_type, COUNT(*) AS total
      FROM (SELECT e.event_time - (e.event_time % 3600000000 + 3600000000) % 3600000000 AS hour,
                   CASE WHEN e.kind = 'RUN' THEN e.event_type ELSE e.kind END AS event_type
            FROM events e) t
      GROUP BY t.hour, t.event_type) c
LEFT JOIN event_counts k ON k.hour = c.hour AND k.event_type = c.event_type
WHERE COALESCE(k.total, 0) <> c.total
UNION ALL
SELECT k.hour, k.event_type, k.total, 0
FROM event_counts k
WHERE k.total <> 0
  AND NOT EXISTS (SELECT 1 FROM events e
                  WHERE e.event_time >= k.hour AND e.event_time < k.hour + 3600000000
                    AND CASE WHEN e.kind = 'RUN' THEN e.event_type ELSE e.kind END = k.event_type
                    AND e.kind IN ('RUN', 'JOB', 'DATASET'))
LIMIT :most

-- name: broken_search_docs
-- Find datasets and jobs whose words in search are wrong, and words without a dataset or job.
SELECT t.kind, t.namespace, t.name
FROM (SELECT 'DATASET' AS kind, d.id, d.namespace, d.name, d.hidden FROM datasets d
      UNION ALL
      SELECT 'JOB', j.id, j.namespace, j.name, j.hidden FROM jobs j) t
LEFT JOIN search_docs s ON s.id = t.id
WHERE s.id IS NULL OR s.kind <> t.kind OR s.namespace <> t.namespace OR s.name <> t.name
   OR s.hidden <> t.hidden
UNION ALL
SELECT s.kind, s.namespace, s.name
FROM search_docs s
WHERE NOT EXISTS (SELECT 1 FROM datasets d WHERE d.id = s.id)
  AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = s.id)
LIMIT :most

-- name: broken_claims
-- Find live claims whose run has ended, or belongs to another job.
SELECT j.namespace, j.name, w.lot, w.run_id, COALESCE(r.state, 'not there')
FROM lot_work w
LEFT JOIN runs r ON r.id = w.run_id
LEFT JOIN jobs j ON j.id = w.job_id
WHERE w.state = 'RUNNING' AND (r.id IS NULL OR r.state <> 'RUNNING' OR r.job_id <> w.job_id)
LIMIT :most

-- name: open_runs_with_lots
-- Read a page of the unfinished runs with lots.
SELECT r.id, r.job_id, r.facets, r.state
FROM runs r
WHERE r.id > :after AND r.state IN ('NEW', 'RUNNING') AND r.facets LIKE '%"penstock_lot"%'
ORDER BY r.id
LIMIT :most

-- name: broken_writers
-- Find lots with two makers, or with two status rows of one job.
SELECT d.namespace, d.name, s.lot, COUNT(*)
FROM lot_status s
LEFT JOIN datasets d ON d.id = s.dataset_id
WHERE s.role = 'OUTPUT'
GROUP BY s.dataset_id, d.namespace, d.name, s.lot
HAVING COUNT(*) > 1
LIMIT :most

-- name: broken_locks
-- Find locks without work: status rows in RUNNING without a live claim.
SELECT d.namespace, d.name, s.lot, s.role, COALESCE(CAST(s.run_id AS TEXT), 'none')
FROM lot_status s
LEFT JOIN datasets d ON d.id = s.dataset_id
LEFT JOIN lot_work w ON w.job_id = s.job_id AND w.lot = s.lot AND w.state = 'RUNNING' AND w.run_id = s.run_id
WHERE s.status = 'RUNNING' AND w.job_id IS NULL
LIMIT :most

-- name: broken_claimed_inputs
-- Find live claims that do not lock the inputs of their run. A run that only reports events may
-- read more, and so may a run whose job was wired to more since.
SELECT j.namespace, j.name, w.lot, d.namespace, d.name
FROM lot_work w
JOIN lot_jobs l ON l.job_id = w.job_id AND l.updated_at <= w.since
JOIN runs r ON r.id = w.run_id AND r.facets NOT LIKE '%"reported":true%'
JOIN run_datasets u ON u.run_id = w.run_id AND u.role = 'INPUT'
JOIN lot_job_datasets x ON x.dataset_id = u.dataset_id AND x.role = 'INPUT' AND x.job_id = w.job_id
LEFT JOIN lot_status s ON s.dataset_id = u.dataset_id AND s.lot = w.lot AND s.role = 'INPUT'
    AND s.job_id = w.job_id AND s.status = 'RUNNING' AND s.run_id = w.run_id AND s.version_id = u.version_id
LEFT JOIN jobs j ON j.id = w.job_id
LEFT JOIN datasets d ON d.id = u.dataset_id
WHERE w.state = 'RUNNING' AND s.job_id IS NULL
LIMIT :most

-- name: broken_ready_lots
-- Find READY lots whose version does not exist, or was not published by a completed run.
SELECT d.namespace, d.name, s.lot, COALESCE(CAST(s.version_id AS TEXT), 'none'), COALESCE(r.state, v.origin, 'not there')
FROM lot_status s
LEFT JOIN datasets d ON d.id = s.dataset_id
LEFT JOIN dataset_versions v ON v.id = s.version_id AND v.dataset_id = s.dataset_id
LEFT JOIN runs r ON r.id = v.run_id
LEFT JOIN jobs j ON j.id = r.job_id
WHERE s.role = 'OUTPUT' AND s.status = 'READY'
  AND (v.id IS NULL OR v.published_at IS NULL
       OR (v.origin = 'RUN' AND (r.id IS NULL OR (r.state <> 'COMPLETED' AND j.type <> 'STREAM'))))
LIMIT :most

-- name: broken_holds
-- Find lots that are held without a reason, and reasons without a held lot.
SELECT d.namespace, d.name, b.lot, b.status, b.why
FROM (
    SELECT s.dataset_id, s.lot, s.status, 'nothing' AS why
    FROM lot_status s LEFT JOIN lot_reasons h ON h.dataset_id = s.dataset_id AND h.lot = s.lot
    WHERE s.role = 'OUTPUT' AND s.held_from <> '' AND h.lot IS NULL
    UNION ALL
    SELECT h.dataset_id, h.lot, COALESCE(s.status, 'not there'), h.why
    FROM lot_reasons h
    LEFT JOIN lot_status s ON s.dataset_id = h.dataset_id AND s.lot = h.lot AND s.role = 'OUTPUT'
    WHERE s.lot IS NULL OR (s.held_from = '' AND (s.status <> 'HOLD' OR s.version_id IS NOT NULL))
) b
LEFT JOIN datasets d ON d.id = b.dataset_id
LIMIT :most

-- name: broken_consumed_lots
-- Find lots that a job has consumed in a version that does not exist.
SELECT j.namespace, j.name, d.namespace, d.name, s.lot, s.version_id
FROM lot_status s
LEFT JOIN datasets d ON d.id = s.dataset_id
LEFT JOIN jobs j ON j.id = s.job_id
LEFT JOIN dataset_versions v ON v.id = s.version_id AND v.dataset_id = s.dataset_id
WHERE s.role = 'INPUT' AND s.status = 'DONE' AND s.version_id IS NOT NULL AND v.id IS NULL
LIMIT :most

-- name: every_lot_job_from
-- Read a page of the jobs that process lots, each with its name and the number of datasets that
-- list it.
SELECT l.job_id, j.namespace, j.name,
       (SELECT COUNT(*) FROM lot_job_datasets d WHERE d.job_id = l.job_id)
FROM lot_jobs l
LEFT JOIN jobs j ON j.id = l.job_id
WHERE l.job_id > :after
ORDER BY l.job_id
LIMIT :most

-- name: work_of_job_from
-- Read a page of a job's work, by lot.
SELECT w.lot
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot > :after
ORDER BY w.lot
LIMIT :most

-- name: broken_meetings
-- Find READY lots that a job never met although it is wired to read them.
SELECT j.namespace, j.name, d.namespace, d.name, s.lot
FROM lot_jobs l
JOIN lot_job_datasets x ON x.job_id = l.job_id AND x.role = 'INPUT'
JOIN lot_status s ON s.dataset_id = x.dataset_id AND s.role = 'OUTPUT' AND s.status = 'READY'
LEFT JOIN lot_work w ON w.job_id = l.job_id AND w.lot = s.lot
LEFT JOIN jobs j ON j.id = l.job_id
LEFT JOIN datasets d ON d.id = s.dataset_id
WHERE l.stated = 1 AND w.job_id IS NULL
LIMIT :most

-- name: broken_manifests
-- Find READY lots whose manifest is not complete or empty, and lots of arcs without a manifest.
SELECT d.namespace, d.name, s.lot, COALESCE(m.state, 'no manifest')
FROM lot_status s
LEFT JOIN lot_manifests m ON m.version_id = s.version_id
LEFT JOIN arcs a ON a.job_id = s.job_id AND a.created_at <= s.since
LEFT JOIN datasets d ON d.id = s.dataset_id
WHERE s.role = 'OUTPUT' AND s.status = 'READY'
  AND ((m.version_id IS NULL AND a.job_id IS NOT NULL)
       OR m.state NOT IN ('complete', 'empty') OR m.dataset_id <> s.dataset_id OR m.lot <> s.lot)
LIMIT :most

-- name: broken_attempts
-- Find manifests of versions that another attempt than the publishing run made, or a failed one.
SELECT d.namespace, d.name, m.lot, m.attempt, COALESCE(r.state, 'not there')
FROM lot_manifests m
JOIN dataset_versions v ON v.id = m.version_id AND v.run_id IS NOT NULL
LEFT JOIN runs r ON r.id = v.run_id
LEFT JOIN datasets d ON d.id = m.dataset_id
WHERE m.state <> 'removed' AND substr(m.attempt, 9, 1) = '-' AND substr(m.attempt, 14, 1) = '-'
  AND (CAST(v.run_id AS TEXT) <> substr(m.attempt, 1, 36) OR r.id IS NULL OR r.state <> 'COMPLETED')
LIMIT :most

-- name: ready_manifests_from
-- Read a page of the manifests that readers get: those of READY versions.
SELECT s.dataset_id, s.lot, s.version_id, m.state, m.key, m.digest, m.attempt, m.uris, m.bytes
FROM lot_status s
JOIN lot_manifests m ON m.version_id = s.version_id
WHERE (s.dataset_id, s.lot) > (:dataset_id, :lot)
  AND s.role = 'OUTPUT' AND s.status = 'READY' AND m.state <> 'removed'
ORDER BY s.dataset_id, s.lot
LIMIT :most

-- name: lots_still_in_versions
-- Find the versions in which a lot is still READY; a key is a dataset, a version and a lot.
SELECT s.version_id
FROM {each keys text AS k}
JOIN lot_status s ON s.dataset_id = CAST(substr(k.value, 1, 36) AS UUID)
    AND s.lot = substr(k.value, 73) AND s.role = 'OUTPUT' AND s.status = 'READY'
    AND s.version_id = CAST(substr(k.value, 37, 36) AS UUID)

-- name: broken_cursors
-- Find subscribers whose cursor is after the last event.
SELECT s.name, s.cursor, n.newest
FROM subscribers s
JOIN (SELECT 'webhook' AS kind,
             COALESCE((SELECT MAX(e.id) FROM lot_events e),
                      (SELECT p.upto FROM outbox_pruned p WHERE p.outbox = 'lots'), 0) AS newest
      UNION ALL
      SELECT 'openlineage',
             COALESCE((SELECT MAX(e.id) FROM run_ends e),
                      (SELECT p.upto FROM outbox_pruned p WHERE p.outbox = 'runs'), 0)) n ON n.kind = s.kind
WHERE s.cursor > n.newest
LIMIT :most

-- name: broken_parts
-- Find running parts of finished lots, and parts whose state differs from their run's.
SELECT j.namespace, j.name, p.lot, p.part, p.state, COALESCE(r.state, 'not there')
FROM arc_parts p
LEFT JOIN runs r ON r.id = p.run_id
LEFT JOIN lot_work w ON w.job_id = p.job_id AND w.lot = p.lot
LEFT JOIN jobs j ON j.id = p.job_id
WHERE (p.state = 'running' AND (w.job_id IS NULL OR w.state = 'DONE'))
   OR (r.id IS NOT NULL AND r.state <> CASE p.state WHEN 'running' THEN 'RUNNING' WHEN 'failed' THEN 'FAILED' ELSE 'COMPLETED' END)
LIMIT :most

-- name: broken_leftovers
-- Find attempts that are listed as failed although their run did not fail.
SELECT j.namespace, j.name, a.lot, a.run_id, r.state
FROM arc_attempts a
JOIN runs r ON r.id = a.run_id
LEFT JOIN jobs j ON j.id = a.job_id
WHERE r.state NOT IN ('FAILED', 'ABORTED')
LIMIT :most

-- name: broken_arcs
-- Find arcs whose job does not exist or does not process lots.
SELECT a.namespace, a.name
FROM arcs a
LEFT JOIN jobs j ON j.id = a.job_id
LEFT JOIN lot_jobs l ON l.job_id = a.job_id
WHERE j.id IS NULL OR l.job_id IS NULL
LIMIT :most

-- name: broken_deposits
-- Find stored versions whose run has not completed, or before which a version is missing.
SELECT o.ark, o.version, o.job_id, COALESCE(r.state, 'pruned')
FROM stored_objects o
LEFT JOIN runs r ON r.id = o.run_id
WHERE (r.id IS NOT NULL AND r.state <> 'COMPLETED')
   OR (o.version > 1 AND NOT EXISTS (SELECT 1 FROM stored_objects b WHERE b.ark = o.ark AND b.version = o.version - 1))
LIMIT :most

-- name: broken_ark_writers
-- Find deposits that may write an object although they have stored it.
SELECT w.ark, w.job_id
FROM ark_writers w
JOIN stored_objects o ON o.key = w.key
LIMIT :most

-- name: batches_are_lots_since
-- Find when batches began to be lots: batches reported before are none.
SELECT COALESCE(MAX(m.applied_at), 0) FROM schema_migrations m WHERE m.name LIKE '%batch_lots'

-- name: broken_batch_lots
-- Find batches that are published as lots that do not exist.
SELECT b.batch_id, b.lot
FROM batch_lots b
LEFT JOIN lot_status s ON s.dataset_id = b.dataset_id AND s.lot = b.lot AND s.role = 'OUTPUT'
WHERE b.due_at = 0 AND s.dataset_id IS NULL
LIMIT :most

-- name: broken_job_edges
-- Find inputs and outputs of runs that are missing among the edges of their jobs, or are not
-- current while the run has not ended.
SELECT j.namespace, j.name, u.role, u.dataset_id, u.run_id
FROM run_datasets u
JOIN runs r ON r.id = u.run_id
JOIN jobs j ON j.id = r.job_id
LEFT JOIN job_edges e ON e.job_id = r.job_id AND e.role = u.role AND e.dataset_id = u.dataset_id
WHERE e.job_id IS NULL OR (r.ended_at IS NULL AND e.current = 0)
LIMIT :most

-- name: shapes_of_jobs_from
-- Read a page of jobs, with the inputs and outputs of their current versions.
SELECT j.id, j.namespace, j.name, COALESCE(v.inputs, '[]'), COALESCE(v.outputs, '[]')
FROM jobs j
LEFT JOIN job_versions v ON v.id = j.current_version_id
WHERE j.id > :after
ORDER BY j.id
LIMIT :most

-- name: checked_backfills
-- Read a page of backfills.
SELECT {columns backfills b}
FROM backfills b
WHERE b.id > :after
ORDER BY b.id
LIMIT :most

-- name: checked_backfill_lots
-- Count the lots of these backfills in each state.
SELECT l.backfill_id, l.state, COUNT(*)
FROM {each ids uuid AS k} JOIN backfill_lots l ON l.backfill_id = k.value
GROUP BY l.backfill_id, l.state

-- name: checked_replays
-- Read a page of replays.
SELECT r.id, r.state, r.is_open, r.counts, r.since
FROM replays r
WHERE r.id > :after
ORDER BY r.id
LIMIT :most

-- name: checked_replay_steps
-- Count the steps of these replays in each state.
SELECT s.replay_id, s.state, COUNT(*)
FROM {each ids uuid AS k} JOIN replay_steps s ON s.replay_id = k.value
GROUP BY s.replay_id, s.state

-- name: broken_replay_order
-- Find steps of open replays with a wrong count of unfinished earlier steps, or behind a step
-- that will never be done.
SELECT s.replay_id, s.number, s.state, s.waits_for, COALESCE(b.undone, 0), COALESCE(b.lost, 0)
FROM replays r
JOIN replay_steps s ON s.replay_id = r.id
LEFT JOIN (SELECT e.replay_id, e.later, COUNT(*) AS undone,
                  SUM(CASE WHEN p.state IN ('failed', 'blocked') THEN 1 ELSE 0 END) AS lost
           FROM replays o
           JOIN replay_edges e ON e.replay_id = o.id
           JOIN replay_steps p ON p.replay_id = e.replay_id AND p.number = e.earlier AND p.state <> 'done'
           WHERE o.is_open = 1
           GROUP BY e.replay_id, e.later) b ON b.replay_id = s.replay_id AND b.later = s.number
WHERE r.is_open = 1
  AND (s.waits_for <> COALESCE(b.undone, 0) OR (s.state = 'pending' AND COALESCE(b.lost, 0) > 0))
LIMIT :most

-- name: broken_operations
-- Find backfills and steps of replays whose job does not exist or does not process lots.
SELECT 'backfill' AS kind, b.id, b.job_id
FROM backfills b
WHERE NOT EXISTS (SELECT 1 FROM lot_jobs l JOIN jobs j ON j.id = l.job_id WHERE l.job_id = b.job_id)
UNION ALL
SELECT 'replay', s.replay_id, s.job_id
FROM (SELECT DISTINCT replay_id, job_id FROM replay_steps) s
WHERE NOT EXISTS (SELECT 1 FROM lot_jobs l JOIN jobs j ON j.id = l.job_id WHERE l.job_id = s.job_id)
LIMIT :most

-- name: broken_turn_keepers
-- Find running or paused replays that do not order work, or not in their state, and others that
-- do.
SELECT r.id, r.state, CASE WHEN k.id IS NULL THEN 'does not keep the turns of its steps'
                           WHEN k.is_paused = 1 THEN 'keeps them as one that is paused'
                           ELSE 'keeps them as one that runs' END
FROM replays r
LEFT JOIN turn_keepers k ON k.id = r.id
WHERE r.state IN ('running', 'paused')
  AND (k.id IS NULL OR k.is_paused <> CASE WHEN r.state = 'paused' THEN 1 ELSE 0 END)
UNION ALL
SELECT k.id, COALESCE(r.state, 'not there'), 'still keeps turns'
FROM turn_keepers k
LEFT JOIN replays r ON r.id = k.id
WHERE COALESCE(r.state, '') NOT IN ('running', 'paused')
LIMIT :most

-- name: steps_without_turn
-- Find steps that a running or paused replay has not started, and whose work is not reserved for
-- it.
SELECT s.replay_id, s.number, s.state
FROM replays r
JOIN replay_steps s ON s.replay_id = r.id AND s.state IN ('pending', 'blocked')
LEFT JOIN lot_turns t ON t.job_id = s.job_id AND t.lot = s.lot
WHERE r.state IN ('running', 'paused')
  AND (t.job_id IS NULL OR t.keepers NOT LIKE '%"' || CAST(r.id AS TEXT) || '"%')
LIMIT :most

-- name: checked_turns
-- Read a page of the work that is reserved for replays.
SELECT {columns lot_turns t}
FROM lot_turns t
WHERE (t.job_id, t.lot) > (:job_id, :lot)
ORDER BY t.job_id, t.lot
LIMIT :most

-- name: unbegun_steps_of_work
-- Find the work, each a job's id and a lot, that running or paused replays have not started.
SELECT s.replay_id, s.job_id, s.lot
FROM replays r
JOIN replay_steps s ON s.replay_id = r.id AND s.state IN ('pending', 'blocked')
WHERE r.state IN ('running', 'paused') AND CAST(s.job_id AS TEXT) || s.lot {in keys text}
