-- name: lot_jobs_by_ids
-- Find how these jobs process lots.
SELECT {columns lot_jobs j}
FROM {each ids uuid AS k} JOIN lot_jobs j ON j.job_id = k.value;

-- name: lot_jobs_by_datasets
-- Find the jobs that read or write the lots of these datasets.
SELECT {columns lot_job_datasets d}
FROM {each ids uuid AS k} JOIN lot_job_datasets d ON d.dataset_id = k.value;

-- name: lot_holds_by_ids
-- Find the holds on these datasets and jobs.
SELECT {columns lot_holds h}
FROM {each ids uuid AS k} JOIN lot_holds h ON h.id = k.value;

-- name: lot_outputs
-- Find the makers of these lots of a dataset.
SELECT {columns lot_status s}
FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.lot {in lots text} AND s.role = 'OUTPUT';

-- name: lot_inputs
-- Find the status of these lots of a dataset as inputs of a job.
SELECT {columns lot_status s}
FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.lot {in lots text} AND s.role = 'INPUT' AND s.job_id = :job_id;

-- name: lot_work_by_lots
-- Find the work of a job on these lots.
SELECT {columns lot_work w}
FROM lot_work w
WHERE w.job_id = :job_id AND w.lot {in lots text};

-- name: ready_work
-- List the ready work of a job, in the order of work.
SELECT {columns lot_work w}
FROM lot_work w
WHERE w.job_id = :job_id AND w.state = 'READY'
ORDER BY w.rank, w.lot_key
LIMIT :most;

-- name: newest_ready_work
-- List the ready work of a job at one rank, in reverse order.
SELECT {columns lot_work w}
FROM lot_work w
WHERE w.job_id = :job_id AND w.state = 'READY' AND w.rank = :rank
ORDER BY w.lot_key DESC
LIMIT :most;

-- name: next_ready_rank
-- Find the next rank at which a job has ready work.
SELECT w.rank
FROM lot_work w
WHERE w.job_id = :job_id AND w.state = 'READY' AND w.rank > :rank
ORDER BY w.rank
LIMIT 1;

-- name: open_work_of_job
-- List all unfinished work of a job.
SELECT {columns lot_work w}
FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'READY'
UNION ALL
SELECT {columns lot_work c}
FROM running_work c WHERE c.job_id = :job_id
UNION ALL
SELECT {columns lot_work w}
FROM stuck_work w WHERE w.job_id = :job_id;

-- name: lots_met_by_job
-- List all lots of a job, after one of them.
SELECT w.lot FROM lot_work w WHERE w.job_id = :job_id AND w.lot > :after ORDER BY w.lot LIMIT :most;

-- name: expired_work
-- List claims with an expired lease, longest ago first.
SELECT {columns lot_work w}
FROM lot_work w
WHERE w.state = 'RUNNING' AND w.lease_until <= :now
ORDER BY w.lease_until
LIMIT :most;

-- name: due_work
-- List work whose back-off has ended.
SELECT {columns lot_work w}
FROM lot_work w
WHERE w.state = 'RETRYABLE' AND w.not_before <= :now
ORDER BY w.not_before
LIMIT :most;

-- name: early_work
-- List claims that were taken or renewed later than a time.
SELECT {columns lot_work w}
FROM lot_work w
WHERE w.state = 'RUNNING' AND w.lease_until - w.lease_seconds * 1000000 > :now
LIMIT :most;

-- name: endless_work
-- List work whose back-off ends later than a time.
SELECT {columns lot_work w}
FROM lot_work w
WHERE w.state = 'RETRYABLE' AND w.not_before > :now
LIMIT :most;

-- name: sweep_is_due
-- Check whether a lease has expired, a back-off has ended or a clock has advanced; or whether a
-- server whose clock was far ahead has left such leases, back-offs or clocks.
SELECT CASE WHEN EXISTS (SELECT 1 FROM lot_work w WHERE w.state = 'RUNNING' AND w.lease_until <= :now)
              OR EXISTS (SELECT 1 FROM lot_work w WHERE w.state = 'RUNNING' AND w.lease_until - w.lease_seconds * 1000000 > :renewed_at_most)
              OR EXISTS (SELECT 1 FROM lot_work w WHERE w.state = 'RETRYABLE' AND w.not_before <= :now)
              OR EXISTS (SELECT 1 FROM lot_work w WHERE w.state = 'RETRYABLE' AND w.not_before > :not_before_at_most)
              OR EXISTS (SELECT 1 FROM lot_clocks c WHERE c.due_at <= :now OR c.due_at > :due_at_most)
            THEN 1 ELSE 0 END;

-- name: due_clocks
-- Find clock datasets with an ended interval that is not READY yet.
SELECT {columns lot_clocks c}
FROM lot_clocks c
WHERE c.due_at <= :now;

-- name: clocks_ahead
-- Find clock datasets whose next interval ends later than a time.
SELECT {columns lot_clocks c}
FROM lot_clocks c
WHERE c.due_at > :now;

-- name: lot_clocks_by_ids
-- Find clock datasets in use.
SELECT {columns lot_clocks c}
FROM {each ids uuid AS k} JOIN lot_clocks c ON c.dataset_id = k.value;

-- name: ready_lots_of_dataset
-- List READY lots of a dataset, after one of them.
SELECT s.lot
FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.lot > :after AND s.role = 'OUTPUT' AND s.status = 'READY'
ORDER BY s.lot
LIMIT :most;

-- name: put_lot_jobs
-- Write how jobs process lots.
{upsert lot_jobs, keep created_at};

-- name: forget_lot_job_datasets
-- Delete wiring by dataset.
DELETE FROM lot_job_datasets
WHERE (dataset_id, role, job_id) IN (SELECT dataset_id, role, job_id FROM ({rows dataset_id uuid, role text, job_id uuid}) r);

-- name: put_lot_job_datasets
-- Write wiring by dataset.
{upsert lot_job_datasets};

-- name: forget_lot_holds
-- Release holds on datasets and jobs.
DELETE FROM lot_holds WHERE id IN ({rows id uuid});

-- name: put_lot_holds
-- Hold datasets and jobs.
{upsert lot_holds};

-- name: forget_lot_status
-- Delete status rows.
DELETE FROM lot_status
WHERE (dataset_id, lot, role, job_id) IN (SELECT dataset_id, lot, role, job_id FROM ({rows dataset_id uuid, lot text, role text, job_id uuid}) r);

-- name: put_lot_status
-- Write status rows.
{upsert lot_status};

-- name: put_lot_work
-- Write the work of jobs.
{upsert lot_work, keep lot_key};

-- name: forget_lot_work
-- Delete the work of jobs on lots.
DELETE FROM lot_work
WHERE (job_id, lot) IN (SELECT job_id, lot FROM ({rows job_id uuid, lot text}) r);

-- name: put_lot_clocks
-- Write the next interval of clocks.
{upsert lot_clocks, keep interval};

-- name: add_lot_log
-- Append entries to the history.
{insert lot_log};

-- name: lot_readers
-- Find the status of a lot as an input of every job that reads it, or did.
SELECT {columns lot_status s}
FROM lot_status s WHERE s.dataset_id = :dataset_id AND s.lot = :lot AND s.role = 'INPUT';

-- name: lot_reasons
-- Find why these lots of a dataset are held.
SELECT {columns lot_reasons r}
FROM lot_reasons r
WHERE r.dataset_id = :dataset_id AND r.lot {in lots text};

-- name: lot_reasons_of_lot
-- Find why lots with this id are held, in any dataset.
SELECT {columns lot_reasons r} FROM lot_reasons r WHERE r.lot = :lot;

-- name: forget_lot_reasons
-- Delete the reasons of lots that are not held any more.
DELETE FROM lot_reasons
WHERE (dataset_id, lot) IN (SELECT dataset_id, lot FROM ({rows dataset_id uuid, lot text}) r);

-- name: put_lot_reasons
-- Write why lots are held.
{upsert lot_reasons};

-- name: put_lot_checks
-- Write check results; a later result replaces the earlier one.
{upsert lot_checks, keep dataset_id, lot};

-- name: all_lot_holds
-- List all holds on datasets and jobs: there are few.
SELECT {columns lot_holds h} FROM lot_holds h;

-- name: all_turn_keepers
-- List the replays that order work: there are few.
SELECT {columns turn_keepers k} FROM turn_keepers k ORDER BY k.id;

-- name: forget_turn_keepers
-- Delete replays that order work no more.
DELETE FROM turn_keepers WHERE id IN ({rows id uuid});

-- name: put_turn_keepers
-- Write replays that order work.
{upsert turn_keepers, keep name};

-- name: lot_turns
-- Find the replays for which a job's work on these lots is reserved.
SELECT {columns lot_turns t}
FROM lot_turns t
WHERE t.job_id = :job_id AND t.lot {in lots text};

-- name: forget_lot_turns
-- Release work that was reserved for replays.
DELETE FROM lot_turns
WHERE (job_id, lot) IN (SELECT job_id, lot FROM ({rows job_id uuid, lot text}) r);

-- name: put_lot_turns
-- Reserve work for replays.
{upsert lot_turns};
