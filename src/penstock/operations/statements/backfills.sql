-- Backfills of arcs.

-- name: backfills_by_ids
-- Find backfills by their ids.
SELECT {columns backfills b}
FROM {each ids uuid AS k} JOIN backfills b ON b.id = k.value;

-- name: last_backfills
-- List the backfills of a namespace, or of all if it is not given, newest first.
SELECT {columns backfills b}
FROM backfills b
WHERE CAST(:namespace AS text) = ''
   OR EXISTS (SELECT 1 FROM jobs j WHERE j.id = b.job_id AND j.namespace = :namespace)
ORDER BY b.created_at DESC
LIMIT :most;

-- name: running_backfills
-- List the running backfills, oldest first.
SELECT b.id FROM backfills b WHERE b.state = 'running' ORDER BY b.created_at;

-- name: put_backfills
-- Write backfills.
{upsert backfills, keep job_id, spec, who, why, created_at};

-- name: going_backfill_lots
-- Find the lots that a backfill has started and that have not ended.
SELECT {columns backfill_lots l}
FROM backfill_lots l
WHERE l.backfill_id = :backfill_id AND l.state = 'going';

-- name: failed_backfill_lots
-- Find the lots that failed again, with their errors.
SELECT l.lot, COALESCE(w.error, '')
FROM backfill_lots l
LEFT JOIN lot_work w ON w.job_id = :job_id AND w.lot = l.lot
WHERE l.backfill_id = :backfill_id AND l.state = 'failed'
ORDER BY l.lot
LIMIT :most;

-- name: put_backfill_lots
-- Write the results of lots of backfills.
{upsert backfill_lots};

-- name: open_lots_to_repair
-- List the lots of a job that are ready, running or retryable, and the finished lots that an
-- output lacks. Lots that wait for an input are not missing yet.
SELECT a.lot FROM (SELECT w.lot FROM stuck_work w WHERE w.job_id = :job_id AND w.state = 'RETRYABLE' ORDER BY w.rank, w.lot_key LIMIT :most) a
UNION ALL
SELECT a.lot FROM (SELECT w.lot FROM lot_work w WHERE w.job_id = :job_id AND w.unmade = 1 ORDER BY w.lot LIMIT :most) a
UNION ALL
SELECT a.lot FROM (SELECT w.lot FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'READY' ORDER BY w.rank, w.lot_key LIMIT :most) a
UNION ALL
SELECT a.lot FROM (SELECT c.lot FROM running_work c WHERE c.job_id = :job_id LIMIT :most) a;

-- name: partial_lots_to_repair
-- List the finished lots of a job of which an output lacks a part of the data. CROSS JOIN keeps
-- SQLite from starting with the partial lots of all datasets.
SELECT m.lot
FROM {each outputs uuid AS d}
CROSS JOIN lot_manifests m
CROSS JOIN lot_status s
CROSS JOIN lot_work w
WHERE m.dataset_id = d.value AND m.state = 'partial'
  AND s.dataset_id = m.dataset_id AND s.lot = m.lot AND s.role = 'OUTPUT' AND s.version_id = m.version_id
  AND w.job_id = :job_id AND w.lot = m.lot AND w.state = 'DONE'
LIMIT :most;

-- name: held_lots_to_repair
-- List the held lots of a job: out of tries, or held by a person.
SELECT w.lot FROM stuck_work w WHERE w.job_id = :job_id AND w.state = 'HELD' ORDER BY w.rank, w.lot_key LIMIT :most;

-- name: stale_lots_to_repair
-- List the finished lots of a job whose inputs have newer versions.
SELECT w.lot FROM lot_work w WHERE w.job_id = :job_id AND w.stale_since > 0 ORDER BY w.lot_key LIMIT :most;

-- name: ended_backfills
-- List the backfills that ended before a time, oldest first, after one of them.
SELECT b.created_at, b.id
FROM backfills b
WHERE b.created_at < :before AND (b.created_at, b.id) > (:created_at, :id)
  AND b.state IN ('done', 'cancelled') AND b.since < :before
ORDER BY b.created_at, b.id
LIMIT :most;

-- name: some_backfill_lots
-- List the first lots of a backfill.
SELECT l.lot FROM backfill_lots l WHERE l.backfill_id = :backfill_id ORDER BY l.lot LIMIT :most;

-- name: forget_backfill_lots
-- Delete lots of a backfill.
DELETE FROM backfill_lots WHERE backfill_id = :backfill_id AND lot {in lots text};

-- name: forget_backfill
-- Delete a backfill.
DELETE FROM backfills WHERE id = :backfill_id;
