-- A long past for one job: the rows of the one lot it has finished, again and again, a minute apart.
-- The n-th copy has lots, ids, numbers and times of its own; all else is as the plane wrote it.

-- name: history_makes_runs
-- Differs by necessity: only PostgreSQL has functions. The id of a run, some minutes later.
CREATE FUNCTION pg_temp.later_run(id uuid, minutes bigint) RETURNS uuid LANGUAGE sql AS $$
    SELECT (
        lpad(to_hex(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint + minutes * 60000), 12, '0')
        || right(replace(id::text, '-', ''), 20)
    )::uuid
$$

-- name: history_makes_versions
-- Differs by necessity: only PostgreSQL has functions. The id of another version.
CREATE FUNCTION pg_temp.other_version(id uuid, n bigint) RETURNS uuid LANGUAGE sql AS $$
    SELECT md5(id::text || n)::uuid
$$

-- name: history_makes_lots
-- Differs by necessity: only PostgreSQL has functions. A text that names the lot, about another.
CREATE FUNCTION pg_temp.other_lot(words text, n bigint) RETURNS text LANGUAGE sql AS $$
    SELECT replace(words, '1000000', (1000000 + n)::text)
$$

-- name: history_of_runs
-- Differs by necessity: only PostgreSQL makes a series. The runs.
INSERT INTO runs (id, external_id, job_id, job_version_id, parent_run_id, state, nominal_start, nominal_end, args, started_at, ended_at, facets, job_facets, stamps, created_at, updated_at)
SELECT pg_temp.later_run(r.id, n - :finished), r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at + n * :step, r.ended_at + n * :step, pg_temp.other_lot(r.facets, n), r.job_facets, r.stamps, r.created_at + n * :step, r.updated_at + n * :step
FROM generate_series(1, :finished - 1) AS n CROSS JOIN runs r

-- name: history_of_run_datasets
-- Differs by necessity: only PostgreSQL makes a series. What the runs read and wrote.
INSERT INTO run_datasets (run_id, role, dataset_id, version_id, facets, stamps)
SELECT pg_temp.later_run(d.run_id, n - :finished), d.role, d.dataset_id, pg_temp.other_version(d.version_id, n), d.facets, d.stamps
FROM generate_series(1, :finished - 1) AS n CROSS JOIN run_datasets d

-- name: history_of_versions
-- Differs by necessity: only PostgreSQL makes a series. The versions that are current were the lot's.
INSERT INTO dataset_versions (id, dataset_id, number, origin, run_id, schema_id, fields, facets, stamps, type, physical_name, source_name, description, lifecycle, column_set_id, created_at, published_at)
SELECT pg_temp.other_version(v.id, n), v.dataset_id, v.number + n, v.origin, pg_temp.later_run(v.run_id, n - :finished), v.schema_id, v.fields, v.facets, v.stamps, v.type, v.physical_name, v.source_name, v.description, v.lifecycle, v.column_set_id, v.created_at + n * :step, v.published_at + n * :step
FROM generate_series(1, :finished - 1) AS n CROSS JOIN datasets d JOIN dataset_versions v ON v.id = d.current_version_id

-- name: history_of_status
-- Differs by necessity: only PostgreSQL makes a series. The status rows.
INSERT INTO lot_status (dataset_id, lot, role, job_id, status, held_from, run_id, version_id, since)
SELECT s.dataset_id, pg_temp.other_lot(s.lot, n), s.role, s.job_id, s.status, s.held_from, pg_temp.later_run(s.run_id, n - :finished), pg_temp.other_version(s.version_id, n), s.since + n * :step
FROM generate_series(1, :finished - 1) AS n CROSS JOIN lot_status s

-- name: history_of_work
-- Differs by necessity: only PostgreSQL makes a series. What the job had to do.
INSERT INTO lot_work (job_id, lot, lot_key, rank, state, tries, token, run_id, owner, lease_seconds, lease_until, not_before, since, error, stale_since)
SELECT w.job_id, pg_temp.other_lot(w.lot, n), pg_temp.other_lot(w.lot_key, n), w.rank, w.state, w.tries, w.token, pg_temp.later_run(w.run_id, n - :finished), w.owner, w.lease_seconds, w.lease_until, w.not_before, w.since + n * :step, w.error, w.stale_since
FROM generate_series(1, :finished - 1) AS n CROSS JOIN lot_work w

-- name: history_of_log
-- Differs by necessity: only PostgreSQL makes a series. The log.
INSERT INTO lot_log (at, action, lot, job_id, dataset_id, run_id, was, became, who, why)
SELECT l.at + n * :step, l.action, pg_temp.other_lot(l.lot, n), l.job_id, l.dataset_id, pg_temp.later_run(l.run_id, n - :finished), l.was, l.became, l.who, l.why
FROM generate_series(1, :finished - 1) AS n CROSS JOIN lot_log l

-- name: history_of_manifests
-- Differs by necessity: only PostgreSQL makes a series. The manifests of what the job has made.
INSERT INTO lot_manifests (version_id, dataset_id, lot, state, key, uris, bytes, digest, attempt, at)
SELECT pg_temp.other_version(m.version_id, n), m.dataset_id, pg_temp.other_lot(m.lot, n), m.state, pg_temp.other_lot(m.key, n), m.uris, m.bytes, m.digest, pg_temp.later_run(m.attempt::uuid, n - :finished)::text, m.at + n * :step
FROM generate_series(1, :finished - 1) AS n CROSS JOIN lot_manifests m

-- name: history_of_events
-- Differs by necessity: only PostgreSQL makes a series. What was told of the lots.
INSERT INTO lot_events (at, kind, dataset_id, lot, state, version_id, job_id, run_id)
SELECT e.at + n * :step, e.kind, e.dataset_id, pg_temp.other_lot(e.lot, n), e.state, pg_temp.other_version(e.version_id, n), e.job_id, pg_temp.later_run(e.run_id, n - :finished)
FROM generate_series(1, :finished - 1) AS n CROSS JOIN lot_events e

-- name: history_of_datasets
-- Differs by necessity: what it follows from does. The last version is the current one.
UPDATE datasets SET
    current_version_id = pg_temp.other_version(current_version_id, :finished - 1),
    latest_version_id = pg_temp.other_version(latest_version_id, :finished - 1),
    published_at = published_at + (:finished - 1) * :step,
    updated_at = updated_at + (:finished - 1) * :step,
    latest_number = latest_number + :finished - 1,
    version_count = version_count + :finished - 1

-- name: history_of_jobs
-- Differs by necessity: what it follows from does. The last run is the newest one.
UPDATE jobs SET
    latest_run_id = pg_temp.later_run(latest_run_id, -1),
    latest_run_at = latest_run_at + (:finished - 1) * :step,
    version_at = version_at + (:finished - 1) * :step,
    updated_at = updated_at + (:finished - 1) * :step,
    run_count = run_count + :finished - 1

-- name: history_of_job_versions
-- Differs by necessity: what it follows from does. The last run is the newest of its shape.
UPDATE job_versions SET latest_run_id = pg_temp.later_run(latest_run_id, -1)

-- name: fill_log
-- Differs by necessity: only PostgreSQL has such a log. Write so many megabytes of it.
SELECT count(*) FROM (
    SELECT pg_logical_emit_message(false, 'bench', repeat('x', 1000000)) FROM generate_series(1, :megabytes)
) written

-- name: let_log_be_reused
-- Differs by necessity: only PostgreSQL has such a log. Nothing in it is needed any more.
CHECKPOINT

-- name: vacuum_tables
-- Differs by necessity: SQLite does not vacuum by itself. What PostgreSQL does by itself after a while.
VACUUM (ANALYZE)
