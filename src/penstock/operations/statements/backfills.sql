-- Backfills of arcs.

-- name: backfills_by_ids
-- Backfills by their ids.
SELECT b.id, b.job_id, b.state, b.spec, b.looked_to, b.counts, b.who, b.why, b.ran, b.since, b.created_at
FROM {each ids uuid AS k} JOIN backfills b ON b.id = k.value;

-- name: last_backfills
-- The last backfills of the arcs of a namespace, or of all where none is named, newest first.
SELECT b.id, b.job_id, b.state, b.spec, b.looked_to, b.counts, b.who, b.why, b.ran, b.since, b.created_at
FROM backfills b
WHERE CAST(:namespace AS text) = ''
   OR EXISTS (SELECT 1 FROM jobs j WHERE j.id = b.job_id AND j.namespace = :namespace)
ORDER BY b.created_at DESC
LIMIT :most;

-- name: running_backfills
-- Backfills that are under way, oldest first.
SELECT b.id FROM backfills b WHERE b.state = 'running' ORDER BY b.created_at;

-- name: put_backfills
-- Write backfills.
INSERT INTO backfills (id, job_id, state, spec, looked_to, counts, who, why, ran, since, created_at)
{rows id uuid, job_id uuid, state text, spec text, looked_to bigint, counts text, who text, why text, ran bigint, since bigint, created_at bigint}
ON CONFLICT (id) DO UPDATE SET
    state = excluded.state,
    looked_to = excluded.looked_to,
    counts = excluded.counts,
    ran = excluded.ran,
    since = excluded.since;

-- name: going_backfill_lots
-- The lots that a backfill has set going and that have not ended.
SELECT l.backfill_id, l.lot, l.state, l.action, l.at
FROM backfill_lots l
WHERE l.backfill_id = :backfill_id AND l.state = 'going';

-- name: failed_backfill_lots
-- Lots that failed again, and what was said of it.
SELECT l.lot, COALESCE(w.error, '')
FROM backfill_lots l
LEFT JOIN lot_work w ON w.job_id = :job_id AND w.lot = l.lot
WHERE l.backfill_id = :backfill_id AND l.state = 'failed'
ORDER BY l.lot
LIMIT :most;

-- name: put_backfill_lots
-- Write what became of the lots of backfills.
INSERT INTO backfill_lots (backfill_id, lot, state, action, at)
{rows backfill_id uuid, lot text, state text, action text, at bigint}
ON CONFLICT (backfill_id, lot) DO UPDATE SET
    state = excluded.state,
    action = excluded.action,
    at = excluded.at;

-- name: open_lots_to_repair
-- Lots that a job can work on, works on or tries again later, and those that are done of which an
-- output lacks the lot. What waits for an input is not missing yet.
SELECT a.lot FROM (SELECT w.lot FROM stuck_work w WHERE w.job_id = :job_id AND w.state = 'LATER' ORDER BY w.rank, w.lot_key LIMIT :most) a
UNION ALL
SELECT a.lot FROM (SELECT w.lot FROM lot_work w WHERE w.job_id = :job_id AND w.unmade = 1 ORDER BY w.lot LIMIT :most) a
UNION ALL
SELECT a.lot FROM (SELECT w.lot FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'READY' ORDER BY w.rank, w.lot_key LIMIT :most) a
UNION ALL
SELECT a.lot FROM (SELECT c.lot FROM running_work c WHERE c.job_id = :job_id LIMIT :most) a;

-- name: partial_lots_to_repair
-- Lots that a job has done, and of whose data a part is missing in one of its outputs. CROSS JOIN
-- keeps SQLite from beginning with the partial lots of all datasets.
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
-- Lots of a job that are held: out of tries, or by a person.
SELECT w.lot FROM stuck_work w WHERE w.job_id = :job_id AND w.state = 'HELD' ORDER BY w.rank, w.lot_key LIMIT :most;

-- name: stale_lots_to_repair
-- Lots that a job has done with inputs of which there are newer versions.
SELECT w.lot FROM lot_work w WHERE w.job_id = :job_id AND w.stale_since > 0 ORDER BY w.lot_key LIMIT :most;

-- name: ended_backfills
-- Backfills that ended before a time, oldest first, after one.
SELECT b.created_at, b.id
FROM backfills b
WHERE b.created_at < :before AND (b.created_at, b.id) > (:created_at, :id)
  AND b.state IN ('done', 'cancelled') AND b.since < :before
ORDER BY b.created_at, b.id
LIMIT :most;

-- name: some_backfill_lots
-- The first lots of a backfill.
SELECT l.lot FROM backfill_lots l WHERE l.backfill_id = :backfill_id ORDER BY l.lot LIMIT :most;

-- name: forget_backfill_lots
-- Delete lots of a backfill.
DELETE FROM backfill_lots WHERE backfill_id = :backfill_id AND lot {in lots text};

-- name: forget_backfill
-- Delete a backfill.
DELETE FROM backfills WHERE id = :backfill_id;
