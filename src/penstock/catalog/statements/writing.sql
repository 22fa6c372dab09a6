-- name: runs_by_ids
-- Find the runs with these ids.
SELECT {columns runs r, except namespace}
FROM {each ids uuid AS k} JOIN runs r ON r.id = k.value;

-- name: last_run_ids
-- Find the greatest id of a run up to another id.
SELECT r.id FROM runs r WHERE r.id <= :upto ORDER BY r.id DESC LIMIT 1;

-- name: jobs_by_ids
-- Find the jobs with these ids.
SELECT {columns jobs j}
FROM {each ids uuid AS k} JOIN jobs j ON j.id = k.value;

-- name: datasets_by_ids
-- Find the datasets with these ids.
SELECT {columns datasets d}
FROM {each ids uuid AS k} JOIN datasets d ON d.id = k.value;

-- name: sightings_by_ids
-- Find when readers of these datasets last reported each facet.
SELECT s.dataset_id, s.stamps
FROM {each ids uuid AS k} JOIN dataset_sightings s ON s.dataset_id = k.value;

-- name: versions_by_ids
-- Find the dataset versions with these ids.
SELECT {columns dataset_versions v}
FROM {each ids uuid AS k} JOIN dataset_versions v ON v.id = k.value;

-- name: job_versions_by_ids
-- Find the job versions with these ids.
SELECT {columns job_versions v}
FROM {each ids uuid AS k} JOIN job_versions v ON v.id = k.value;

-- name: aliases_by_ids
-- Find the datasets with these second names.
SELECT {columns dataset_aliases a}
FROM {each ids uuid AS k} JOIN dataset_aliases a ON a.id = k.value;

-- name: aliases_of_datasets
-- Find the second names of these datasets.
SELECT {columns dataset_aliases a}
FROM {each ids uuid AS k} JOIN dataset_aliases a ON a.dataset_id = k.value;

-- name: namespaces_by_names
-- Find the namespaces with these names.
SELECT {columns namespaces n}
FROM {each ids text AS k} JOIN namespaces n ON n.name = k.value;

-- name: grants_by_namespaces
-- Find the namespaces whose runs may write the datasets of these namespaces.
SELECT g.namespace, g.grantee
FROM {each ids text AS k} JOIN namespace_grants g ON g.namespace = k.value;

-- name: grants_of_namespace
-- List the grants of a namespace, by grantee.
SELECT {columns namespace_grants g}
FROM namespace_grants g WHERE g.namespace = :namespace ORDER BY g.grantee;

-- name: add_grant
-- Let the runs of a namespace write the datasets of another one.
INSERT INTO namespace_grants (namespace, grantee, granted_by, granted_at)
VALUES (:namespace, :grantee, :granted_by, :granted_at);

-- name: remove_grant
-- Revoke a grant.
DELETE FROM namespace_grants WHERE namespace = :namespace AND grantee = :grantee;

-- name: sources_by_names
-- Find the sources with these names.
SELECT {columns sources s}
FROM {each ids text AS k} JOIN sources s ON s.name = k.value;

-- name: tags_by_names
-- Find the tags with these names.
SELECT t.name, t.description
FROM {each ids text AS k} JOIN tags t ON t.name = k.value;

-- name: run_datasets_by_runs
-- Find the inputs and outputs of these runs.
SELECT {columns run_datasets d}
FROM {each ids uuid AS k} JOIN run_datasets d ON d.run_id = k.value;

-- name: current_versions_of_datasets
-- Find the current version of each of these datasets.
SELECT {columns dataset_versions v}
FROM {each ids uuid AS k} JOIN datasets d ON d.id = k.value
JOIN dataset_versions v ON v.id = d.current_version_id;

-- name: current_versions_of_jobs
-- Find the current version of each of these jobs.
SELECT {columns job_versions v}
FROM {each ids uuid AS k} JOIN jobs j ON j.id = k.value
JOIN job_versions v ON v.id = j.current_version_id;

-- name: current_edges_of_jobs
-- Find the current inputs and outputs of these jobs, and since when they have them.
SELECT e.job_id, e.role, e.dataset_id, e.first_at
FROM {each ids uuid AS k} JOIN job_edges e ON e.job_id = k.value AND e.current = 1;

-- name: going_edges_of_job
-- Find the inputs and outputs of the unfinished runs of a job.
SELECT d.run_id, d.role, d.dataset_id
FROM runs r JOIN run_datasets d ON d.run_id = r.id
WHERE r.job_id = :job_id AND r.ended_at IS NULL;

-- name: newest_published_versions
-- List the versions of a dataset that were published last, newest first.
SELECT {columns dataset_versions v}
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at IS NOT NULL
ORDER BY v.published_at DESC, v.id DESC
LIMIT :most;

-- name: versions_published_by
-- List the versions of a dataset that were published by a time, newest first.
SELECT {columns dataset_versions v}
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at <= :at
ORDER BY v.published_at DESC, v.id DESC
LIMIT :most;

-- name: versions_published_before
-- List the versions of a dataset that were published before another one, newest first.
SELECT {columns dataset_versions v}
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at IS NOT NULL
  AND (v.published_at, v.id) < (:at, :id)
ORDER BY v.published_at DESC, v.id DESC
LIMIT :most;

-- name: versions_published_after
-- List the versions of a dataset that were published after another one, oldest first.
SELECT {columns dataset_versions v}
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at IS NOT NULL
  AND (v.published_at, v.id) > (:at, :id)
ORDER BY v.published_at, v.id
LIMIT :most;

-- name: facet_sets_by_ids
-- Find the sets of inherited facets with these ids.
SELECT {columns facet_sets f}
FROM {each ids uuid AS k} JOIN facet_sets f ON f.id = k.value;

-- name: newest_versions
-- List the versions of a dataset with the highest numbers.
SELECT {columns dataset_versions v}
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id
ORDER BY v.number DESC
LIMIT :most;

-- name: newest_runs_of_job
-- List the runs of a job, newest first.
SELECT {columns runs r, except namespace}
FROM runs r
WHERE r.job_id = :job_id
ORDER BY r.created_at DESC, r.id DESC
LIMIT :most;

-- name: newest_runs_of_job_version
-- List the runs of this job version since a time, newest first.
SELECT {columns runs r, except namespace}
FROM runs r
WHERE r.job_id = :job_id AND r.job_version_id = :version_id AND r.created_at >= :since
ORDER BY r.created_at DESC, r.id DESC
LIMIT :most;

-- name: first_runs_of_job_version
-- List the runs of this job version since a time, oldest first.
SELECT {columns runs r, except namespace}
FROM runs r
WHERE r.job_id = :job_id AND r.job_version_id = :version_id AND r.created_at >= :since
ORDER BY r.created_at, r.id
LIMIT :most;

-- name: first_runs_with_edge
-- List the runs of a job that read or wrote a dataset, oldest first.
SELECT {columns runs r, except namespace}
FROM runs r
WHERE r.job_id = :job_id
  AND EXISTS (SELECT 1 FROM run_datasets d WHERE d.run_id = r.id AND d.role = :role AND d.dataset_id = :dataset_id)
ORDER BY r.created_at, r.id
LIMIT :most;

-- name: last_ended_runs_of_job
-- List the runs of a job that ended last.
SELECT {columns runs r, except namespace}
FROM runs r
WHERE r.job_id = :job_id AND r.ended_at IS NOT NULL AND r.job_version_id IS NOT NULL
ORDER BY r.ended_at DESC, r.job_version_id DESC
LIMIT :most;

-- name: going_runs_of_job
-- List the unfinished runs of a job that have a job version, newest first. The sign keeps SQLite
-- from walking through all runs in this order.
SELECT {columns runs r, except namespace}
FROM runs r
WHERE r.job_id = :job_id AND r.ended_at IS NULL AND r.job_version_id IS NOT NULL
ORDER BY +r.created_at DESC, r.job_version_id DESC
LIMIT :most;

-- name: ids_of_job_versions
-- List the ids of a job's versions.
SELECT v.id FROM job_versions v WHERE v.job_id = :job_id;

-- name: last_declared_job_versions
-- List the job versions that were stated last.
SELECT {columns job_versions v}
FROM job_versions v
WHERE v.job_id = :job_id AND v.declared_at IS NOT NULL
ORDER BY v.declared_at DESC, v.id DESC
LIMIT :most;

-- name: forget_job_versions
-- Delete job versions that turn out to belong to no run.
DELETE FROM job_versions WHERE id IN ({rows id uuid});

-- name: hide_datasets_of_namespace
-- Hide the visible datasets of a namespace. Datasets hidden by its last deletion join this one.
UPDATE datasets SET hidden = 1, hidden_at = :at
WHERE namespace = :namespace AND (hidden = 0 OR hidden_at = :deleted_at);

-- name: show_datasets_of_namespace
-- Show the datasets that were hidden with a namespace, but none that was deleted before.
UPDATE datasets SET hidden = 0, hidden_at = :at
WHERE namespace = :namespace AND hidden = 1 AND hidden_at = :deleted_at;

-- name: hide_jobs_of_namespace
-- Hide the visible jobs of a namespace. Jobs hidden by its last deletion join this one.
UPDATE jobs SET hidden = 1, hidden_at = :at
WHERE namespace = :namespace AND (hidden = 0 OR hidden_at = :deleted_at);

-- name: show_jobs_of_namespace
-- Show the jobs that were hidden with a namespace, but none that was deleted before.
UPDATE jobs SET hidden = 0, hidden_at = :at
WHERE namespace = :namespace AND hidden = 1 AND hidden_at = :deleted_at;

-- name: hide_search_docs_of_namespace
-- Hide a namespace from search, or show its visible datasets and jobs there.
UPDATE search_docs SET hidden = :hidden
WHERE hidden <> :hidden
  AND id IN (SELECT d.id FROM datasets d WHERE d.namespace = :namespace AND d.hidden = :hidden
             UNION ALL SELECT j.id FROM jobs j WHERE j.namespace = :namespace AND j.hidden = :hidden);

-- name: forget_tallies_of_namespace
-- Delete the counts of a namespace.
DELETE FROM tallies WHERE namespace = :namespace;

-- name: count_datasets_of_namespace
-- Count the visible datasets of a namespace again.
INSERT INTO tallies (kind, namespace, state, total)
SELECT 'DATASET', namespace, '', count(*) FROM datasets
WHERE namespace = :namespace AND hidden = 0 GROUP BY namespace;

-- name: count_jobs_of_namespace
-- Count the visible jobs of a namespace again.
INSERT INTO tallies (kind, namespace, state, total)
SELECT 'JOB', namespace, latest_run_state, count(*) FROM jobs
WHERE namespace = :namespace AND hidden = 0 GROUP BY namespace, latest_run_state;

-- name: move_datasets
-- Write indexed columns that seldom change. They are separate because SQLite rewrites an index
-- for every column that a statement names, changed or not. The rows exist; the conflict finds
-- them by key.
{insert datasets}
ON CONFLICT (id) DO UPDATE SET hidden = excluded.hidden, created_at = excluded.created_at;

-- name: move_versions
-- Give versions other numbers.
{insert dataset_versions}
ON CONFLICT (id) DO UPDATE SET number = excluded.number;

-- name: move_jobs
-- Date jobs back.
{insert jobs}
ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at;

-- name: move_runs
-- Move runs to other jobs, or date them back.
INSERT INTO runs ({columns runs, except namespace}, namespace)
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at,
       COALESCE((SELECT j.namespace FROM jobs j WHERE j.id = r.job_id), '')
FROM ({rows runs, except namespace}) r WHERE true
ON CONFLICT (id) DO UPDATE SET job_id = excluded.job_id, namespace = excluded.namespace, created_at = excluded.created_at;

-- name: advance_datasets
-- Write the columns of datasets that an ordinary run changes. The rows exist; the conflict finds
-- them by key, and the values for the other columns are not used.
INSERT INTO datasets (id, namespace, name, type, physical_name, source_name, current_version_id, published_at, latest_version_id, latest_number, version_count, created_at, updated_at)
SELECT id, '', '', '', '', '', current_version_id, published_at, latest_version_id, latest_number, version_count, 0, updated_at
FROM ({rows id uuid, current_version_id uuid, published_at bigint, latest_version_id uuid, latest_number bigint, version_count bigint, updated_at bigint}) r WHERE true
ON CONFLICT (id) DO UPDATE SET
    current_version_id = excluded.current_version_id,
    published_at = excluded.published_at,
    latest_version_id = excluded.latest_version_id,
    latest_number = excluded.latest_number,
    version_count = excluded.version_count,
    updated_at = excluded.updated_at;

-- name: advance_versions
-- Publish versions, or write their stamps.
INSERT INTO dataset_versions (id, dataset_id, number, origin, schema_id, fields, facets, stamps, type, physical_name, source_name, created_at, published_at)
SELECT id, id, 0, 'DECLARED', id, '', '', stamps, '', '', '', 0, published_at
FROM ({rows id uuid, stamps text, published_at bigint}) r WHERE true
ON CONFLICT (id) DO UPDATE SET
    stamps = excluded.stamps,
    published_at = excluded.published_at;

-- name: advance_jobs
-- Write the columns of jobs that an ordinary run changes.
INSERT INTO jobs (id, namespace, name, type, type_stamp, description_stamp, location_stamp, parent_stamp, current_version_id, version_at, latest_run_id, latest_run_at, latest_run_state, run_count, created_at, updated_at)
SELECT id, '', '', 'BATCH', type_stamp, description_stamp, location_stamp, parent_stamp, current_version_id, version_at, latest_run_id, latest_run_at, latest_run_state, run_count, 0, updated_at
FROM ({rows id uuid, type_stamp bigint, description_stamp bigint, location_stamp bigint, parent_stamp bigint, current_version_id uuid, version_at bigint, latest_run_id uuid, latest_run_at bigint, latest_run_state text, run_count bigint, updated_at bigint}) r WHERE true
ON CONFLICT (id) DO UPDATE SET
    type_stamp = excluded.type_stamp,
    description_stamp = excluded.description_stamp,
    location_stamp = excluded.location_stamp,
    parent_stamp = excluded.parent_stamp,
    current_version_id = excluded.current_version_id,
    version_at = excluded.version_at,
    latest_run_id = excluded.latest_run_id,
    latest_run_at = excluded.latest_run_at,
    latest_run_state = excluded.latest_run_state,
    run_count = excluded.run_count,
    updated_at = excluded.updated_at;

-- name: advance_job_versions
-- Write the latest run of job versions.
INSERT INTO job_versions (id, job_id, inputs, outputs, latest_run_id, created_at)
SELECT id, id, '', '', latest_run_id, 0
FROM ({rows id uuid, latest_run_id uuid}) r WHERE true
ON CONFLICT (id) DO UPDATE SET latest_run_id = excluded.latest_run_id;

-- name: advance_runs
-- Write the state of runs.
INSERT INTO runs (id, job_id, job_version_id, state, started_at, ended_at, stamps, created_at, updated_at)
SELECT id, id, job_version_id, state, started_at, ended_at, stamps, 0, updated_at
FROM ({rows id uuid, job_version_id uuid, state text, started_at bigint, ended_at bigint, stamps text, updated_at bigint}) r WHERE true
ON CONFLICT (id) DO UPDATE SET
    job_version_id = excluded.job_version_id,
    state = excluded.state,
    started_at = excluded.started_at,
    ended_at = excluded.ended_at,
    stamps = excluded.stamps,
    updated_at = excluded.updated_at;

-- name: put_namespaces
-- Write namespaces.
{upsert namespaces};

-- name: put_sources
-- Write sources.
{upsert sources};

-- name: put_tags
-- Write tags.
{upsert tags};

-- name: put_tag_uses
-- Write the tags that namespaces use.
{upsert tag_uses};

-- name: put_datasets
-- Write datasets.
{upsert datasets, keep namespace, name, hidden, created_at};

-- name: put_sightings
-- Write when readers of datasets last reported each facet.
{upsert dataset_sightings};

-- name: put_aliases
-- Write second names of datasets.
{upsert dataset_aliases};

-- name: put_versions
-- Write dataset versions.
{upsert dataset_versions, keep dataset_id, number, origin, run_id};

-- name: put_facet_sets
-- Write sets of inherited facets; a set never changes.
{insert facet_sets}
ON CONFLICT (id) DO NOTHING;

-- name: put_jobs
-- Write jobs.
{upsert jobs, keep namespace, name, created_at};

-- name: put_job_versions
-- Write job versions.
{upsert job_versions, keep job_id, location, inputs, outputs};

-- name: put_runs
-- Write runs, each with the namespace of its job, which is written before it.
INSERT INTO runs ({columns runs, except namespace}, namespace)
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at,
       COALESCE((SELECT j.namespace FROM jobs j WHERE j.id = r.job_id), '')
FROM ({rows runs, except namespace}) r WHERE true
ON CONFLICT (id) DO UPDATE SET
    job_version_id = excluded.job_version_id,
    parent_run_id = excluded.parent_run_id,
    state = excluded.state,
    nominal_start = excluded.nominal_start,
    nominal_end = excluded.nominal_end,
    args = excluded.args,
    started_at = excluded.started_at,
    ended_at = excluded.ended_at,
    facets = excluded.facets,
    job_facets = excluded.job_facets,
    stamps = excluded.stamps,
    updated_at = excluded.updated_at;

-- name: put_run_datasets
-- Write the inputs and outputs of runs.
{upsert run_datasets};

-- name: put_quality_reports
-- Write which runs reported on the quality of which versions.
{upsert quality_reports};

-- name: put_column_edges
-- Write column lineage; a set never changes.
{insert column_edges}
ON CONFLICT (set_id, field, input_dataset_id, input_field) DO NOTHING;

-- name: forget_edges
-- Delete edges of jobs that only runs had which belong to other jobs now.
DELETE FROM job_edges
WHERE (job_id, role, dataset_id) IN ({rows job_id uuid, role text, dataset_id uuid});

-- name: put_edges
-- Write the inputs and outputs of jobs; the earliest time of an edge is kept.
{insert job_edges}
ON CONFLICT (job_id, role, dataset_id) DO UPDATE SET
    current = excluded.current,
    first_at = CASE WHEN excluded.first_at < job_edges.first_at THEN excluded.first_at ELSE job_edges.first_at END;

-- name: put_events
-- Write events as they were received.
INSERT INTO events (event_time, received_at, kind, namespace, event_type, run_id, payload)
{rows event_time bigint, received_at bigint, kind text, namespace text, event_type text, run_id uuid, payload long};

-- name: put_stream_schemas
-- Write where the schemas of streams are.
{upsert stream_schemas};

-- name: add_event_counts
-- Count events by hour and type.
{insert event_counts}
ON CONFLICT (hour, event_type) DO UPDATE SET total = event_counts.total + excluded.total;

-- name: add_tallies
-- Count visible datasets and jobs.
{insert tallies}
ON CONFLICT (kind, namespace, state) DO UPDATE SET total = tallies.total + excluded.total;

-- name: put_search_docs
-- Write the words and the shown names of datasets and jobs.
INSERT INTO search_docs (id, kind, namespace, name, hidden, body)
{rows id uuid, kind text, namespace text, name text, hidden bigint, body text}
ON CONFLICT (id) DO UPDATE SET hidden = excluded.hidden, body = excluded.body;
