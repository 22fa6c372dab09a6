-- name: lot_jobs_by_ids
-- How the lots of these jobs are worked on.
SELECT j.job_id, j.inputs, j.outputs, j.lease_seconds, j.tries_max, j.back_off_seconds, j.enforced, j.stated, j.stale, j.created_at, j.updated_at, j.managed_by
FROM {each ids uuid AS k} JOIN lot_jobs j ON j.job_id = k.value;

-- name: lot_jobs_by_datasets
-- Which jobs read or write the lots of these datasets.
SELECT d.dataset_id, d.role, d.job_id
FROM {each ids uuid AS k} JOIN lot_job_datasets d ON d.dataset_id = k.value;

-- name: lot_holds_by_ids
-- Which of these datasets and jobs are held.
SELECT h.id, h.kind, h.who, h.why, h.since, h.source_id
FROM {each ids uuid AS k} JOIN lot_holds h ON h.id = k.value;

-- name: lot_outputs
-- Who made, or makes, these lots of a dataset.
SELECT s.dataset_id, s.lot, s.role, s.job_id, s.status, s.held_from, s.run_id, s.version_id, s.since
FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.lot {in lots text} AND s.role = 'OUTPUT';

-- name: lot_inputs
-- How far a job is with reading these lots of a dataset.
SELECT s.dataset_id, s.lot, s.role, s.job_id, s.status, s.held_from, s.run_id, s.version_id, s.since
FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.lot {in lots text} AND s.role = 'INPUT' AND s.job_id = :job_id;

-- name: lot_work_by_lots
-- What a job has to do with these lots.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot {in lots text};

-- name: ready_work
-- What a job can work on, first what comes first.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.job_id = :job_id AND w.state = 'READY'
ORDER BY w.rank, w.lot_key
LIMIT :most;

-- name: newest_ready_work
-- What a job can work on at one rank, last what comes first.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.job_id = :job_id AND w.state = 'READY' AND w.rank = :rank
ORDER BY w.lot_key DESC
LIMIT :most;

-- name: next_ready_rank
-- The first rank after another at which a job can work on something.
SELECT w.rank
FROM lot_work w
WHERE w.job_id = :job_id AND w.state = 'READY' AND w.rank > :rank
ORDER BY w.rank
LIMIT 1;

-- name: open_work_of_job
-- All that a job has met and not done.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'READY'
UNION ALL
SELECT c.job_id, c.lot, c.lot_key, c.rank, c.state, c.tries, c.token, c.run_id, c.owner, c.lease_seconds, c.lease_until, c.not_before, c.since, c.error, c.stale_since, c.unmade
FROM running_work c WHERE c.job_id = :job_id
UNION ALL
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM stuck_work w WHERE w.job_id = :job_id;

-- name: lots_met_by_job
-- All lots that a job has met, after one of them.
SELECT w.lot FROM lot_work w WHERE w.job_id = :job_id AND w.lot > :after ORDER BY w.lot LIMIT :most;

-- name: expired_work
-- Claims whose lease has run out, longest ago first.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.state = 'RUNNING' AND w.lease_until <= :now
ORDER BY w.lease_until
LIMIT :most;

-- name: due_work
-- What has waited long enough to be tried again.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.state = 'LATER' AND w.not_before <= :now
ORDER BY w.not_before
LIMIT :most;

-- name: early_work
-- Claims that were given or renewed later than this.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.state = 'RUNNING' AND w.lease_until - w.lease_seconds * 1000000 > :now
LIMIT :most;

-- name: endless_work
-- What is to be tried again, and that later than this.
SELECT w.job_id, w.lot, w.lot_key, w.rank, w.state, w.tries, w.token, w.run_id, w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since, w.error, w.stale_since, w.unmade
FROM lot_work w
WHERE w.state = 'LATER' AND w.not_before > :now
LIMIT :most;

-- name: sweep_is_due
-- Whether a lease has run out, a back-off has ended or a clock has gone on; or whether a server
-- whose clock was far ahead has left such leases, back-offs or clocks.
SELECT CASE WHEN EXISTS (SELECT 1 FROM lot_work w WHERE w.state = 'RUNNING' AND w.lease_until <= :now)
              OR EXISTS (SELECT 1 FROM lot_work w WHERE w.state = 'RUNNING' AND w.lease_until - w.lease_seconds * 1000000 > :renewed_at_most)
              OR EXISTS (SELECT 1 FROM lot_work w WHERE w.state = 'LATER' AND w.not_before <= :now)
              OR EXISTS (SELECT 1 FROM lot_work w WHERE w.state = 'LATER' AND w.not_before > :not_before_at_most)
              OR EXISTS (SELECT 1 FROM lot_clocks c WHERE c.due_at <= :now OR c.due_at > :due_at_most)
            THEN 1 ELSE 0 END;

-- name: due_clocks
-- Clock datasets of which an interval has ended that is not READY yet.
SELECT c.dataset_id, c.interval, c.due_at
FROM lot_clocks c
WHERE c.due_at <= :now;

-- name: clocks_ahead
-- Clock datasets that are to go on later than this.
SELECT c.dataset_id, c.interval, c.due_at
FROM lot_clocks c
WHERE c.due_at > :now;

-- name: lot_clocks_by_ids
-- Clock datasets in use.
SELECT c.dataset_id, c.interval, c.due_at
FROM {each ids uuid AS k} JOIN lot_clocks c ON c.dataset_id = k.value;

-- name: ready_lots_of_dataset
-- Lots of a dataset that are there to be read, after one of them.
SELECT s.lot
FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.lot > :after AND s.role = 'OUTPUT' AND s.status = 'READY'
ORDER BY s.lot
LIMIT :most;

-- name: put_lot_jobs
-- Write how jobs' lots are worked on.
INSERT INTO lot_jobs (job_id, inputs, outputs, lease_seconds, tries_max, back_off_seconds, enforced, stated, stale, created_at, updated_at, managed_by)
{rows job_id uuid, inputs text, outputs text, lease_seconds bigint, tries_max bigint, back_off_seconds bigint, enforced bigint, stated bigint, stale text, created_at bigint, updated_at bigint, managed_by text}
ON CONFLICT (job_id) DO UPDATE SET
    inputs = excluded.inputs,
    outputs = excluded.outputs,
    lease_seconds = excluded.lease_seconds,
    tries_max = excluded.tries_max,
    back_off_seconds = excluded.back_off_seconds,
    enforced = excluded.enforced,
    stated = excluded.stated,
    stale = excluded.stale,
    updated_at = excluded.updated_at,
    managed_by = excluded.managed_by;

-- name: forget_lot_job_datasets
-- Forget which datasets' lots jobs read and write.
DELETE FROM lot_job_datasets
WHERE (dataset_id, role, job_id) IN (SELECT dataset_id, role, job_id FROM ({rows dataset_id uuid, role text, job_id uuid}) r);

-- name: put_lot_job_datasets
-- Write which datasets' lots jobs read and write.
INSERT INTO lot_job_datasets (dataset_id, role, job_id)
{rows dataset_id uuid, role text, job_id uuid}
ON CONFLICT (dataset_id, role, job_id) DO NOTHING;

-- name: forget_lot_holds
-- Let datasets and jobs go on.
DELETE FROM lot_holds WHERE id IN ({rows id uuid});

-- name: put_lot_holds
-- Stop datasets and jobs.
INSERT INTO lot_holds (id, kind, who, why, since, source_id)
{rows id uuid, kind text, who text, why text, since bigint, source_id uuid}
ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, who = excluded.who, why = excluded.why, since = excluded.since, source_id = excluded.source_id;

-- name: forget_lot_status
-- Take status rows away.
DELETE FROM lot_status
WHERE (dataset_id, lot, role, job_id) IN (SELECT dataset_id, lot, role, job_id FROM ({rows dataset_id uuid, lot text, role text, job_id uuid}) r);

-- name: put_lot_status
-- Write status rows.
INSERT INTO lot_status (dataset_id, lot, role, job_id, status, held_from, run_id, version_id, since)
{rows dataset_id uuid, lot text, role text, job_id uuid, status text, held_from text, run_id uuid, version_id uuid, since bigint}
ON CONFLICT (dataset_id, lot, role, job_id) DO UPDATE SET
    status = excluded.status,
    held_from = excluded.held_from,
    run_id = excluded.run_id,
    version_id = excluded.version_id,
    since = excluded.since;

-- name: put_lot_work
-- Write what jobs have to do.
INSERT INTO lot_work (job_id, lot, lot_key, rank, state, tries, token, run_id, owner, lease_seconds, lease_until, not_before, since, error, stale_since, unmade)
{rows job_id uuid, lot text, lot_key text, rank bigint, state text, tries bigint, token bigint, run_id uuid, owner text, lease_seconds bigint, lease_until bigint, not_before bigint, since bigint, error text, stale_since bigint, unmade bigint}
ON CONFLICT (job_id, lot) DO UPDATE SET
    rank = excluded.rank,
    state = excluded.state,
    tries = excluded.tries,
    token = excluded.token,
    run_id = excluded.run_id,
    owner = excluded.owner,
    lease_seconds = excluded.lease_seconds,
    lease_until = excluded.lease_until,
    not_before = excluded.not_before,
    since = excluded.since,
    error = excluded.error,
    stale_since = excluded.stale_since,
    unmade = excluded.unmade;

-- name: forget_lot_work
-- Jobs have nothing to do with lots any more.
DELETE FROM lot_work
WHERE (job_id, lot) IN (SELECT job_id, lot FROM ({rows job_id uuid, lot text}) r);

-- name: put_lot_clocks
-- Write how far clocks are.
INSERT INTO lot_clocks (dataset_id, interval, due_at)
{rows dataset_id uuid, interval text, due_at bigint}
ON CONFLICT (dataset_id) DO UPDATE SET due_at = excluded.due_at;

-- name: add_lot_log
-- Append transitions.
INSERT INTO lot_log (at, action, lot, job_id, dataset_id, run_id, was, became, who, why)
{rows at bigint, action text, lot text, job_id uuid, dataset_id uuid, run_id uuid, was text, became text, who text, why text};

-- name: lot_readers
-- What every job does, or did, with a lot of a dataset as one that reads it.
SELECT s.dataset_id, s.lot, s.role, s.job_id, s.status, s.held_from, s.run_id, s.version_id, s.since
FROM lot_status s WHERE s.dataset_id = :dataset_id AND s.lot = :lot AND s.role = 'INPUT';

-- name: lot_reasons
-- Why these lots of a dataset are held.
SELECT r.dataset_id, r.lot, r.why
FROM lot_reasons r
WHERE r.dataset_id = :dataset_id AND r.lot {in lots text};

-- name: lot_reasons_of_lot
-- Why lots with this id are held, in whatever dataset.
SELECT r.dataset_id, r.lot, r.why FROM lot_reasons r WHERE r.lot = :lot;

-- name: forget_lot_reasons
-- Lots are held no more.
DELETE FROM lot_reasons
WHERE (dataset_id, lot) IN (SELECT dataset_id, lot FROM ({rows dataset_id uuid, lot text}) r);

-- name: put_lot_reasons
-- Write why lots are held.
INSERT INTO lot_reasons (dataset_id, lot, why)
{rows dataset_id uuid, lot text, why text}
ON CONFLICT (dataset_id, lot) DO UPDATE SET why = excluded.why;

-- name: put_lot_checks
-- Write what checks said; said again, the last holds.
INSERT INTO lot_checks (version_id, name, field, dataset_id, lot, success, detail, run_id, at)
{rows version_id uuid, name text, field text, dataset_id uuid, lot text, success bigint, detail text, run_id uuid, at bigint}
ON CONFLICT (version_id, name, field) DO UPDATE SET
    success = excluded.success,
    detail = excluded.detail,
    run_id = excluded.run_id,
    at = excluded.at;

-- name: all_lot_holds
-- Every dataset and job that is held whole: there are few.
SELECT h.id, h.kind, h.who, h.why, h.since, h.source_id FROM lot_holds h;

-- name: all_turn_keepers
-- Who has work done in an order of their own: there are few.
SELECT k.id, k.name, k.is_paused FROM turn_keepers k ORDER BY k.id;

-- name: forget_turn_keepers
-- Some keep no turns any more.
DELETE FROM turn_keepers WHERE id IN ({rows id uuid});

-- name: put_turn_keepers
-- Write who keeps turns.
INSERT INTO turn_keepers (id, name, is_paused)
{rows id uuid, name text, is_paused bigint}
ON CONFLICT (id) DO UPDATE SET is_paused = excluded.is_paused;

-- name: lot_turns
-- Which turns a job's work on these lots waits for.
SELECT t.job_id, t.lot, t.keepers, t.kept_since
FROM lot_turns t
WHERE t.job_id = :job_id AND t.lot {in lots text};

-- name: forget_lot_turns
-- Work waits for its turn no more.
DELETE FROM lot_turns
WHERE (job_id, lot) IN (SELECT job_id, lot FROM ({rows job_id uuid, lot text}) r);

-- name: put_lot_turns
-- Write which work waits for its turn.
INSERT INTO lot_turns (job_id, lot, keepers, kept_since)
{rows job_id uuid, lot text, keepers text, kept_since bigint}
ON CONFLICT (job_id, lot) DO UPDATE SET keepers = excluded.keepers, kept_since = excluded.kept_since;
