-- One event as single statements, in the order and of the kinds that Marquez uses: 12 for the
-- event, 7 for each of its 3 datasets. Unlike there, what most events share (namespaces and
-- sources) is not rewritten each time: in one transaction that would let only one event in at a
-- time.

-- name: single_event
-- Keep the event.
INSERT INTO single_events (id, event_time, event_type, run_id, payload)
VALUES (:id, :at, :event_type, :run_id, :payload)

-- name: single_namespace
-- Make sure of a namespace.
INSERT INTO single_namespaces (name, created_at) VALUES (:namespace, :at)
ON CONFLICT (name) DO NOTHING

-- name: single_source
-- Make sure of a source.
INSERT INTO single_sources (name, type, created_at) VALUES (:source, 'POSTGRESQL', :at)
ON CONFLICT (name) DO NOTHING

-- name: single_job
-- Write the job.
INSERT INTO single_jobs (id, namespace, name, type, created_at, updated_at)
VALUES (:job_id, :namespace, :name, 'BATCH', :at, :at)
ON CONFLICT (namespace, name) DO UPDATE SET type = excluded.type, updated_at = excluded.updated_at
RETURNING id

-- name: single_run_args
-- Write the run's arguments.
INSERT INTO single_run_args (checksum, args, created_at) VALUES (:checksum, :args, :at)
ON CONFLICT (checksum) DO NOTHING

-- name: single_run
-- Write the run.
INSERT INTO single_runs (id, job_id, args_checksum, created_at, updated_at)
VALUES (:run_id, :job_id, :checksum, :at, :at)
ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at
RETURNING id

-- name: single_run_state
-- Note a state of the run.
INSERT INTO single_run_states (run_id, state, at) VALUES (:run_id, :state, :at)

-- name: single_run_starts
-- Mark the run as started.
UPDATE single_runs SET state = :state, started_at = :at WHERE id = :run_id

-- name: single_run_ends
-- Mark the run as ended.
UPDATE single_runs SET state = :state, ended_at = :at WHERE id = :run_id

-- name: single_facets
-- Keep the facets of a run, a job or a dataset.
INSERT INTO single_facets (owner_id, run_id, kind, facets, at)
VALUES (:owner_id, :run_id, :kind, :facets, :at)

-- name: single_job_version
-- Write the job's version.
INSERT INTO single_job_versions (id, job_id, latest_run_id, created_at, updated_at)
VALUES (:version_id, :job_id, :run_id, :at, :at)
ON CONFLICT (id) DO UPDATE SET
    latest_run_id = excluded.latest_run_id,
    updated_at = excluded.updated_at
RETURNING id

-- name: single_job_moves
-- Point the job at its version and its run.
UPDATE single_jobs SET current_version_id = :version_id, current_run_id = :run_id
WHERE id = :job_id

-- name: single_run_moves
-- Point the run at the job's version.
UPDATE single_runs SET job_version_id = :version_id WHERE id = :run_id

-- name: single_dataset
-- Write a dataset.
INSERT INTO single_datasets (id, namespace, source, name, physical_name, created_at, updated_at)
VALUES (:dataset_id, :namespace, :source, :name, :name, :at, :at)
ON CONFLICT (namespace, name) DO UPDATE SET updated_at = excluded.updated_at
RETURNING id, current_version_id

-- name: single_symlink
-- Make sure of a dataset's first name.
INSERT INTO single_symlinks (namespace, name, dataset_id) VALUES (:namespace, :name, :dataset_id)
ON CONFLICT (namespace, name) DO NOTHING

-- name: single_version
-- Write a dataset's version.
INSERT INTO single_versions (id, dataset_id, run_id, fields, created_at)
VALUES (:version_id, :dataset_id, :run_id, :fields, :at)
ON CONFLICT (id) DO UPDATE SET run_id = excluded.run_id
RETURNING id

-- name: single_input
-- Note that the run read a version.
INSERT INTO single_run_io (run_id, role, version_id) VALUES (:run_id, 'INPUT', :version_id)
ON CONFLICT (run_id, role, version_id) DO NOTHING

-- name: single_dataset_moves
-- Point a dataset at its version.
UPDATE single_datasets SET current_version_id = :version_id WHERE id = :dataset_id
