-- Whole tables of locks, for tests that compare everything.

-- name: every_lot_job
-- All jobs that work lot by lot.
SELECT job_id, inputs, outputs, lease_seconds, tries_max, back_off_seconds, enforced, stated, stale, created_at, updated_at, managed_by FROM lot_jobs;

-- name: every_lot_hold
-- All datasets and jobs that are held whole.
SELECT id, kind, who, why, since, source_id FROM lot_holds;

-- name: every_lot_status
-- All status rows.
SELECT dataset_id, lot, role, job_id, status, held_from, run_id, version_id, since FROM lot_status;

-- name: every_lot_work
-- All that jobs have to do, did or do.
SELECT job_id, lot, lot_key, rank, state, tries, token, run_id, owner, lease_seconds, lease_until, not_before, since, error, stale_since, unmade FROM lot_work;

-- name: every_lot_reason
-- Why lots are held.
SELECT dataset_id, lot, why FROM lot_reasons;

-- name: every_lot_log
-- All transitions in the order they were made.
SELECT at, action, lot, job_id, dataset_id, run_id, was, became, who, why FROM lot_log ORDER BY id;

-- name: every_lot_version
-- The versions that lots have.
SELECT version_id FROM lot_status WHERE role = 'OUTPUT' AND version_id IS NOT NULL
