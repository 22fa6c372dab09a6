-- name: runs_by_ids
-- The runs with these ids.
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at
FROM {each ids uuid AS k} JOIN runs r ON r.id = k.value;

-- name: last_run_ids
-- The greatest id of a run up to another.
SELECT r.id FROM runs r WHERE r.id <= :upto ORDER BY r.id DESC LIMIT 1;

-- name: jobs_by_ids
-- The jobs with these ids.
SELECT j.id, j.namespace, j.name, j.type, j.type_stamp, j.description, j.description_stamp, j.location, j.location_stamp, j.parent_job_id, j.parent_stamp, j.current_version_id, j.version_at, j.latest_run_id, j.latest_run_at, j.latest_run_state, j.run_count, j.version_count, j.tags, j.labels, j.facets, j.stamps, j.hidden, j.hidden_at, j.created_at, j.updated_at
FROM {each ids uuid AS k} JOIN jobs j ON j.id = k.value;

-- name: datasets_by_ids
-- The datasets with these ids.
SELECT d.id, d.namespace, d.name, d.type, d.physical_name, d.source_name, d.description, d.description_stamp, d.current_version_id, d.published_at, d.latest_version_id, d.latest_number, d.version_count, d.implied_version_id, d.observed, d.tags, d.field_tags, d.lifecycle, d.hidden, d.hidden_at, d.created_at, d.updated_at, d.declared, d.declared_stamps, d.declared_column_set_id
FROM {each ids uuid AS k} JOIN datasets d ON d.id = k.value;

-- name: sightings_by_ids
-- When readers of these datasets last said what.
SELECT s.dataset_id, s.stamps
FROM {each ids uuid AS k} JOIN dataset_sightings s ON s.dataset_id = k.value;

-- name: versions_by_ids
-- The dataset versions with these ids.
SELECT v.id, v.dataset_id, v.number, v.origin, v.run_id, v.schema_id, v.fields, v.facets, v.stamps, v.type, v.physical_name, v.source_name, v.description, v.lifecycle, v.column_set_id, v.created_at, v.published_at, v.unconfirmed, v.inherited_set_id
FROM {each ids uuid AS k} JOIN dataset_versions v ON v.id = k.value;

-- name: job_versions_by_ids
-- The job versions with these ids.
SELECT v.id, v.job_id, v.location, v.inputs, v.outputs, v.latest_run_id, v.created_at, v.declared_at
FROM {each ids uuid AS k} JOIN job_versions v ON v.id = k.value;

-- name: aliases_by_ids
-- The datasets that go by these second names.
SELECT a.id, a.namespace, a.name, a.dataset_id, a.type
FROM {each ids uuid AS k} JOIN dataset_aliases a ON a.id = k.value;

-- name: aliases_of_datasets
-- The second names of these datasets.
SELECT a.id, a.namespace, a.name, a.dataset_id, a.type
FROM {each ids uuid AS k} JOIN dataset_aliases a ON a.dataset_id = k.value;

-- name: namespaces_by_names
-- The namespaces with these names.
SELECT n.name, n.owner_name, n.description, n.hidden, n.created_at, n.updated_at, n.hidden_at
FROM {each ids text AS k} JOIN namespaces n ON n.name = k.value;

-- name: grants_by_namespaces
-- The namespaces whose runs may write the datasets of these namespaces.
SELECT g.namespace, g.grantee
FROM {each ids text AS k} JOIN namespace_grants g ON g.namespace = k.value;

-- name: grants_of_namespace
-- The grants of a namespace, by grantee.
SELECT g.namespace, g.grantee, g.granted_by, g.granted_at
FROM namespace_grants g WHERE g.namespace = :namespace ORDER BY g.grantee;

-- name: add_grant
-- Let the runs of a namespace write the datasets of another.
INSERT INTO namespace_grants (namespace, grantee, granted_by, granted_at)
VALUES (:namespace, :grantee, :granted_by, :granted_at);

-- name: remove_grant
-- Take a grant back.
DELETE FROM namespace_grants WHERE namespace = :namespace AND grantee = :grantee;

-- name: sources_by_names
-- The sources with these names.
SELECT s.name, s.type, s.connection_url, s.description, s.created_at, s.updated_at
FROM {each ids text AS k} JOIN sources s ON s.name = k.value;

-- name: tags_by_names
-- The tags with these names.
SELECT t.name, t.description
FROM {each ids text AS k} JOIN tags t ON t.name = k.value;

-- name: run_datasets_by_runs
-- What these runs read and wrote.
SELECT d.run_id, d.role, d.dataset_id, d.version_id, d.facets, d.stamps
FROM {each ids uuid AS k} JOIN run_datasets d ON d.run_id = k.value;

-- name: current_versions_of_datasets
-- The current version of each of these datasets.
SELECT v.id, v.dataset_id, v.number, v.origin, v.run_id, v.schema_id, v.fields, v.facets, v.stamps, v.type, v.physical_name, v.source_name, v.description, v.lifecycle, v.column_set_id, v.created_at, v.published_at, v.unconfirmed, v.inherited_set_id
FROM {each ids uuid AS k} JOIN datasets d ON d.id = k.value
JOIN dataset_versions v ON v.id = d.current_version_id;

-- name: current_versions_of_jobs
-- The current version of each of these jobs.
SELECT v.id, v.job_id, v.location, v.inputs, v.outputs, v.latest_run_id, v.created_at, v.declared_at
FROM {each ids uuid AS k} JOIN jobs j ON j.id = k.value
JOIN job_versions v ON v.id = j.current_version_id;

-- name: current_edges_of_jobs
-- What these jobs read and write as things stand, and since when.
SELECT e.job_id, e.role, e.dataset_id, e.first_at
FROM {each ids uuid AS k} JOIN job_edges e ON e.job_id = k.value AND e.current = 1;

-- name: going_edges_of_job
-- What the unfinished runs of a job read and write.
SELECT d.run_id, d.role, d.dataset_id
FROM runs r JOIN run_datasets d ON d.run_id = r.id
WHERE r.job_id = :job_id AND r.ended_at IS NULL;

-- name: newest_published_versions
-- The versions of a dataset last published, newest first.
SELECT v.id, v.dataset_id, v.number, v.origin, v.run_id, v.schema_id, v.fields, v.facets, v.stamps, v.type, v.physical_name, v.source_name, v.description, v.lifecycle, v.column_set_id, v.created_at, v.published_at, v.unconfirmed, v.inherited_set_id
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at IS NOT NULL
ORDER BY v.published_at DESC, v.id DESC
LIMIT :most;

-- name: versions_published_by
-- The versions of a dataset that were published by a time, newest first.
SELECT v.id, v.dataset_id, v.number, v.origin, v.run_id, v.schema_id, v.fields, v.facets, v.stamps, v.type, v.physical_name, v.source_name, v.description, v.lifecycle, v.column_set_id, v.created_at, v.published_at, v.unconfirmed, v.inherited_set_id
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at <= :at
ORDER BY v.published_at DESC, v.id DESC
LIMIT :most;

-- name: versions_published_before
-- The versions of a dataset that were published before another one, newest first.
SELECT v.id, v.dataset_id, v.number, v.origin, v.run_id, v.schema_id, v.fields, v.facets, v.stamps, v.type, v.physical_name, v.source_name, v.description, v.lifecycle, v.column_set_id, v.created_at, v.published_at, v.unconfirmed, v.inherited_set_id
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at IS NOT NULL
  AND (v.published_at, v.id) < (:at, :id)
ORDER BY v.published_at DESC, v.id DESC
LIMIT :most;

-- name: versions_published_after
-- The versions of a dataset that were published after another one, oldest first.
SELECT v.id, v.dataset_id, v.number, v.origin, v.run_id, v.schema_id, v.fields, v.facets, v.stamps, v.type, v.physical_name, v.source_name, v.description, v.lifecycle, v.column_set_id, v.created_at, v.published_at, v.unconfirmed, v.inherited_set_id
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at IS NOT NULL
  AND (v.published_at, v.id) > (:at, :id)
ORDER BY v.published_at, v.id
LIMIT :most;

-- name: facet_sets_by_ids
-- The sets of inherited facets with these ids.
SELECT f.id, f.dataset_id, f.facets, f.stamps
FROM {each ids uuid AS k} JOIN facet_sets f ON f.id = k.value;

-- name: newest_versions
-- The versions of a dataset with the highest numbers.
SELECT v.id, v.dataset_id, v.number, v.origin, v.run_id, v.schema_id, v.fields, v.facets, v.stamps, v.type, v.physical_name, v.source_name, v.description, v.lifecycle, v.column_set_id, v.created_at, v.published_at, v.unconfirmed, v.inherited_set_id
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id
ORDER BY v.number DESC
LIMIT :most;

-- name: newest_runs_of_job
-- The runs of a job, newest first.
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at
FROM runs r
WHERE r.job_id = :job_id
ORDER BY r.created_at DESC, r.id DESC
LIMIT :most;

-- name: newest_runs_of_job_version
-- The runs since some time that have this shape of a job, newest first.
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at
FROM runs r
WHERE r.job_id = :job_id AND r.job_version_id = :version_id AND r.created_at >= :since
ORDER BY r.created_at DESC, r.id DESC
LIMIT :most;

-- name: first_runs_of_job_version
-- The runs since some time that have this shape of a job, oldest first.
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at
FROM runs r
WHERE r.job_id = :job_id AND r.job_version_id = :version_id AND r.created_at >= :since
ORDER BY r.created_at, r.id
LIMIT :most;

-- name: first_runs_with_edge
-- The runs of a job that read or wrote a dataset, oldest first.
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at
FROM runs r
WHERE r.job_id = :job_id
  AND EXISTS (SELECT 1 FROM run_datasets d WHERE d.run_id = r.id AND d.role = :role AND d.dataset_id = :dataset_id)
ORDER BY r.created_at, r.id
LIMIT :most;

-- name: last_ended_runs_of_job
-- The runs of a job that ended last.
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at
FROM runs r
WHERE r.job_id = :job_id AND r.ended_at IS NOT NULL AND r.job_version_id IS NOT NULL
ORDER BY r.ended_at DESC, r.job_version_id DESC
LIMIT :most;

-- name: going_runs_of_job
-- The unfinished runs of a job that have a shape already, newest first. The sign keeps SQLite from
-- walking through all runs in this order.
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at
FROM runs r
WHERE r.job_id = :job_id AND r.ended_at IS NULL AND r.job_version_id IS NOT NULL
ORDER BY +r.created_at DESC, r.job_version_id DESC
LIMIT :most;

-- name: ids_of_job_versions
-- The shapes of a job.
SELECT v.id FROM job_versions v WHERE v.job_id = :job_id;

-- name: last_declared_job_versions
-- The shapes of a job that were stated last.
SELECT v.id, v.job_id, v.location, v.inputs, v.outputs, v.latest_run_id, v.created_at, v.declared_at
FROM job_versions v
WHERE v.job_id = :job_id AND v.declared_at IS NOT NULL
ORDER BY v.declared_at DESC, v.id DESC
LIMIT :most;

-- name: forget_job_versions
-- Forget shapes of jobs that no run has after all.
DELETE FROM job_versions WHERE id IN ({rows id uuid});

-- name: hide_datasets_of_namespace
-- Hide what a namespace shows of datasets; what its last deletion hid goes with this one.
UPDATE datasets SET hidden = 1, hidden_at = :at
WHERE namespace = :namespace AND (hidden = 0 OR hidden_at = :deleted_at);

-- name: show_datasets_of_namespace
-- Show the datasets that were hidden with a namespace, and none that was gone before.
UPDATE datasets SET hidden = 0, hidden_at = :at
WHERE namespace = :namespace AND hidden = 1 AND hidden_at = :deleted_at;

-- name: hide_jobs_of_namespace
-- Hide what a namespace shows of jobs; what its last deletion hid goes with this one.
UPDATE jobs SET hidden = 1, hidden_at = :at
WHERE namespace = :namespace AND (hidden = 0 OR hidden_at = :deleted_at);

-- name: show_jobs_of_namespace
-- Show the jobs that were hidden with a namespace, and none that was gone before.
UPDATE jobs SET hidden = 0, hidden_at = :at
WHERE namespace = :namespace AND hidden = 1 AND hidden_at = :deleted_at;

-- name: hide_search_docs_of_namespace
-- Let search find nothing of a namespace any more, or what is shown of it.
UPDATE search_docs SET hidden = :hidden
WHERE hidden <> :hidden
  AND id IN (SELECT d.id FROM datasets d WHERE d.namespace = :namespace AND d.hidden = :hidden
             UNION ALL SELECT j.id FROM jobs j WHERE j.namespace = :namespace AND j.hidden = :hidden);

-- name: forget_tallies_of_namespace
-- Forget what was counted of a namespace.
DELETE FROM tallies WHERE namespace = :namespace;

-- name: count_datasets_of_namespace
-- Count a namespace's visible datasets afresh.
INSERT INTO tallies (kind, namespace, state, total)
SELECT 'DATASET', namespace, '', count(*) FROM datasets
WHERE namespace = :namespace AND hidden = 0 GROUP BY namespace;

-- name: count_jobs_of_namespace
-- Count a namespace's visible jobs afresh.
INSERT INTO tallies (kind, namespace, state, total)
SELECT 'JOB', namespace, latest_run_state, count(*) FROM jobs
WHERE namespace = :namespace AND hidden = 0 GROUP BY namespace, latest_run_state;

-- name: move_datasets
-- Write what stands in indexes and seldom changes: SQLite rewrites an index for every column that a
-- statement names, changed or not. The rows are there; a conflict is how to find them by key.
INSERT INTO datasets (id, namespace, name, type, physical_name, source_name, description, description_stamp, current_version_id, published_at, latest_version_id, latest_number, version_count, implied_version_id, observed, tags, field_tags, lifecycle, hidden, hidden_at, created_at, updated_at, declared, declared_stamps, declared_column_set_id)
{rows id uuid, namespace text, name text, type text, physical_name text, source_name text, description text, description_stamp bigint, current_version_id uuid, published_at bigint, latest_version_id uuid, latest_number bigint, version_count bigint, implied_version_id uuid, observed text, tags text, field_tags text, lifecycle text, hidden bigint, hidden_at bigint, created_at bigint, updated_at bigint, declared text, declared_stamps text, declared_column_set_id uuid}
ON CONFLICT (id) DO UPDATE SET hidden = excluded.hidden, created_at = excluded.created_at;

-- name: move_versions
-- Give versions other numbers.
INSERT INTO dataset_versions (id, dataset_id, number, origin, run_id, schema_id, fields, facets, stamps, type, physical_name, source_name, description, lifecycle, column_set_id, created_at, published_at, unconfirmed, inherited_set_id)
{rows id uuid, dataset_id uuid, number bigint, origin text, run_id uuid, schema_id uuid, fields text, facets text, stamps text, type text, physical_name text, source_name text, description text, lifecycle text, column_set_id uuid, created_at bigint, published_at bigint, unconfirmed bigint, inherited_set_id uuid}
ON CONFLICT (id) DO UPDATE SET number = excluded.number;

-- name: move_jobs
-- Date jobs back.
INSERT INTO jobs (id, namespace, name, type, type_stamp, description, description_stamp, location, location_stamp, parent_job_id, parent_stamp, current_version_id, version_at, latest_run_id, latest_run_at, latest_run_state, run_count, version_count, tags, labels, facets, stamps, hidden, hidden_at, created_at, updated_at)
{rows id uuid, namespace text, name text, type text, type_stamp bigint, description text, description_stamp bigint, location text, location_stamp bigint, parent_job_id uuid, parent_stamp bigint, current_version_id uuid, version_at bigint, latest_run_id uuid, latest_run_at bigint, latest_run_state text, run_count bigint, version_count bigint, tags text, labels text, facets text, stamps text, hidden bigint, hidden_at bigint, created_at bigint, updated_at bigint}
ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at;

-- name: move_runs
-- Give runs to other jobs, or date them back.
INSERT INTO runs (id, external_id, job_id, job_version_id, parent_run_id, state, nominal_start, nominal_end, args, started_at, ended_at, facets, job_facets, stamps, created_at, updated_at, namespace)
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at,
       COALESCE((SELECT j.namespace FROM jobs j WHERE j.id = r.job_id), '')
FROM ({rows id uuid, external_id text, job_id uuid, job_version_id uuid, parent_run_id uuid, state text, nominal_start bigint, nominal_end bigint, args text, started_at bigint, ended_at bigint, facets text, job_facets text, stamps text, created_at bigint, updated_at bigint}) r WHERE true
ON CONFLICT (id) DO UPDATE SET job_id = excluded.job_id, namespace = excluded.namespace, created_at = excluded.created_at;

-- name: advance_datasets
-- Move datasets on to other versions: what an ordinary run changes. The rows are there; a conflict
-- is how to find them by key, and what stands in the other columns is not looked at.
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
-- Publish versions, or repeat what is known of them.
INSERT INTO dataset_versions (id, dataset_id, number, origin, schema_id, fields, facets, stamps, type, physical_name, source_name, created_at, published_at)
SELECT id, id, 0, 'DECLARED', id, '', '', stamps, '', '', '', 0, published_at
FROM ({rows id uuid, stamps text, published_at bigint}) r WHERE true
ON CONFLICT (id) DO UPDATE SET
    stamps = excluded.stamps,
    published_at = excluded.published_at;

-- name: advance_jobs
-- Move jobs on to other runs and versions: what an ordinary run changes.
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
-- Say which run with these shapes began last.
INSERT INTO job_versions (id, job_id, inputs, outputs, latest_run_id, created_at)
SELECT id, id, '', '', latest_run_id, 0
FROM ({rows id uuid, latest_run_id uuid}) r WHERE true
ON CONFLICT (id) DO UPDATE SET latest_run_id = excluded.latest_run_id;

-- name: advance_runs
-- Move runs on to other states.
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
INSERT INTO namespaces (name, owner_name, description, hidden, created_at, updated_at, hidden_at)
{rows name text, owner_name text, description text, hidden bigint, created_at bigint, updated_at bigint, hidden_at bigint}
ON CONFLICT (name) DO UPDATE SET
    owner_name = excluded.owner_name,
    description = excluded.description,
    hidden = excluded.hidden,
    created_at = excluded.created_at,
    updated_at = excluded.updated_at,
    hidden_at = excluded.hidden_at;

-- name: put_sources
-- Write sources.
INSERT INTO sources (name, type, connection_url, description, created_at, updated_at)
{rows name text, type text, connection_url text, description text, created_at bigint, updated_at bigint}
ON CONFLICT (name) DO UPDATE SET
    type = excluded.type,
    connection_url = excluded.connection_url,
    description = excluded.description,
    created_at = excluded.created_at,
    updated_at = excluded.updated_at;

-- name: put_tags
-- Write tags.
INSERT INTO tags (name, description)
{rows name text, description text}
ON CONFLICT (name) DO UPDATE SET
    description = excluded.description;

-- name: put_tag_uses
-- Note which tags a namespace uses.
INSERT INTO tag_uses (namespace, tag)
{rows namespace text, tag text}
ON CONFLICT (namespace, tag) DO NOTHING;

-- name: put_datasets
-- Write datasets.
INSERT INTO datasets (id, namespace, name, type, physical_name, source_name, description, description_stamp, current_version_id, published_at, latest_version_id, latest_number, version_count, implied_version_id, observed, tags, field_tags, lifecycle, hidden, hidden_at, created_at, updated_at, declared, declared_stamps, declared_column_set_id)
{rows id uuid, namespace text, name text, type text, physical_name text, source_name text, description text, description_stamp bigint, current_version_id uuid, published_at bigint, latest_version_id uuid, latest_number bigint, version_count bigint, implied_version_id uuid, observed text, tags text, field_tags text, lifecycle text, hidden bigint, hidden_at bigint, created_at bigint, updated_at bigint, declared text, declared_stamps text, declared_column_set_id uuid}
ON CONFLICT (id) DO UPDATE SET
    type = excluded.type,
    physical_name = excluded.physical_name,
    source_name = excluded.source_name,
    description = excluded.description,
    description_stamp = excluded.description_stamp,
    current_version_id = excluded.current_version_id,
    published_at = excluded.published_at,
    latest_version_id = excluded.latest_version_id,
    latest_number = excluded.latest_number,
    version_count = excluded.version_count,
    implied_version_id = excluded.implied_version_id,
    observed = excluded.observed,
    tags = excluded.tags,
    field_tags = excluded.field_tags,
    lifecycle = excluded.lifecycle,
    hidden_at = excluded.hidden_at,
    updated_at = excluded.updated_at,
    declared = excluded.declared,
    declared_stamps = excluded.declared_stamps,
    declared_column_set_id = excluded.declared_column_set_id;

-- name: put_sightings
-- Write when readers of datasets last said what.
INSERT INTO dataset_sightings (dataset_id, stamps)
{rows dataset_id uuid, stamps text}
ON CONFLICT (dataset_id) DO UPDATE SET stamps = excluded.stamps;

-- name: put_aliases
-- Write second names of datasets.
INSERT INTO dataset_aliases (id, namespace, name, dataset_id, type)
{rows id uuid, namespace text, name text, dataset_id uuid, type text}
ON CONFLICT (id) DO UPDATE SET
    namespace = excluded.namespace,
    name = excluded.name,
    dataset_id = excluded.dataset_id,
    type = excluded.type;

-- name: put_versions
-- Write dataset versions.
INSERT INTO dataset_versions (id, dataset_id, number, origin, run_id, schema_id, fields, facets, stamps, type, physical_name, source_name, description, lifecycle, column_set_id, created_at, published_at, unconfirmed, inherited_set_id)
{rows id uuid, dataset_id uuid, number bigint, origin text, run_id uuid, schema_id uuid, fields text, facets text, stamps text, type text, physical_name text, source_name text, description text, lifecycle text, column_set_id uuid, created_at bigint, published_at bigint, unconfirmed bigint, inherited_set_id uuid}
ON CONFLICT (id) DO UPDATE SET
    schema_id = excluded.schema_id,
    fields = excluded.fields,
    facets = excluded.facets,
    stamps = excluded.stamps,
    type = excluded.type,
    physical_name = excluded.physical_name,
    source_name = excluded.source_name,
    description = excluded.description,
    lifecycle = excluded.lifecycle,
    column_set_id = excluded.column_set_id,
    created_at = excluded.created_at,
    published_at = excluded.published_at,
    unconfirmed = excluded.unconfirmed,
    inherited_set_id = excluded.inherited_set_id;

-- name: put_facet_sets
-- Write sets of inherited facets; a set never changes.
INSERT INTO facet_sets (id, dataset_id, facets, stamps)
{rows id uuid, dataset_id uuid, facets text, stamps text}
ON CONFLICT (id) DO NOTHING;

-- name: put_jobs
-- Write jobs.
INSERT INTO jobs (id, namespace, name, type, type_stamp, description, description_stamp, location, location_stamp, parent_job_id, parent_stamp, current_version_id, version_at, latest_run_id, latest_run_at, latest_run_state, run_count, version_count, tags, labels, facets, stamps, hidden, hidden_at, created_at, updated_at)
{rows id uuid, namespace text, name text, type text, type_stamp bigint, description text, description_stamp bigint, location text, location_stamp bigint, parent_job_id uuid, parent_stamp bigint, current_version_id uuid, version_at bigint, latest_run_id uuid, latest_run_at bigint, latest_run_state text, run_count bigint, version_count bigint, tags text, labels text, facets text, stamps text, hidden bigint, hidden_at bigint, created_at bigint, updated_at bigint}
ON CONFLICT (id) DO UPDATE SET
    type = excluded.type,
    type_stamp = excluded.type_stamp,
    description = excluded.description,
    description_stamp = excluded.description_stamp,
    location = excluded.location,
    location_stamp = excluded.location_stamp,
    parent_job_id = excluded.parent_job_id,
    parent_stamp = excluded.parent_stamp,
    current_version_id = excluded.current_version_id,
    version_at = excluded.version_at,
    latest_run_id = excluded.latest_run_id,
    latest_run_at = excluded.latest_run_at,
    latest_run_state = excluded.latest_run_state,
    run_count = excluded.run_count,
    version_count = excluded.version_count,
    tags = excluded.tags,
    labels = excluded.labels,
    facets = excluded.facets,
    stamps = excluded.stamps,
    hidden = excluded.hidden,
    hidden_at = excluded.hidden_at,
    updated_at = excluded.updated_at;

-- name: put_job_versions
-- Write job versions.
INSERT INTO job_versions (id, job_id, location, inputs, outputs, latest_run_id, created_at, declared_at)
{rows id uuid, job_id uuid, location text, inputs text, outputs text, latest_run_id uuid, created_at bigint, declared_at bigint}
ON CONFLICT (id) DO UPDATE SET
    latest_run_id = excluded.latest_run_id,
    created_at = excluded.created_at,
    declared_at = excluded.declared_at;

-- name: put_runs
-- Write runs, each with the namespace of its job, which is written before it.
INSERT INTO runs (id, external_id, job_id, job_version_id, parent_run_id, state, nominal_start, nominal_end, args, started_at, ended_at, facets, job_facets, stamps, created_at, updated_at, namespace)
SELECT r.id, r.external_id, r.job_id, r.job_version_id, r.parent_run_id, r.state, r.nominal_start, r.nominal_end, r.args, r.started_at, r.ended_at, r.facets, r.job_facets, r.stamps, r.created_at, r.updated_at,
       COALESCE((SELECT j.namespace FROM jobs j WHERE j.id = r.job_id), '')
FROM ({rows id uuid, external_id text, job_id uuid, job_version_id uuid, parent_run_id uuid, state text, nominal_start bigint, nominal_end bigint, args text, started_at bigint, ended_at bigint, facets text, job_facets text, stamps text, created_at bigint, updated_at bigint}) r WHERE true
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
-- Write what runs read and wrote.
INSERT INTO run_datasets (run_id, role, dataset_id, version_id, facets, stamps)
{rows run_id uuid, role text, dataset_id uuid, version_id uuid, facets text, stamps text}
ON CONFLICT (run_id, role, dataset_id) DO UPDATE SET
    version_id = excluded.version_id,
    facets = excluded.facets,
    stamps = excluded.stamps;

-- name: put_quality_reports
-- Write which runs reported on the quality of which versions.
INSERT INTO quality_reports (run_id, role, dataset_id, version_id, at)
{rows run_id uuid, role text, dataset_id uuid, version_id uuid, at bigint}
ON CONFLICT (run_id, role, dataset_id) DO UPDATE SET
    version_id = excluded.version_id,
    at = excluded.at;

-- name: put_column_edges
-- Write column lineage; a set never changes.
INSERT INTO column_edges (set_id, dataset_id, field, input_dataset_id, input_field, description, type, indirect)
{rows set_id uuid, dataset_id uuid, field text, input_dataset_id uuid, input_field text, description text, type text, indirect bigint}
ON CONFLICT (set_id, field, input_dataset_id, input_field) DO NOTHING;

-- name: forget_edges
-- Forget edges of jobs that only runs had which belong to other jobs.
DELETE FROM job_edges
WHERE (job_id, role, dataset_id) IN ({rows job_id uuid, role text, dataset_id uuid});

-- name: put_edges
-- Write what jobs read and write; the first sight of an edge is kept.
INSERT INTO job_edges (job_id, role, dataset_id, current, first_at)
{rows job_id uuid, role text, dataset_id uuid, current bigint, first_at bigint}
ON CONFLICT (job_id, role, dataset_id) DO UPDATE SET
    current = excluded.current,
    first_at = CASE WHEN excluded.first_at < job_edges.first_at THEN excluded.first_at ELSE job_edges.first_at END;

-- name: put_events
-- Keep events as they were received.
INSERT INTO events (event_time, received_at, kind, namespace, event_type, run_id, payload)
{rows event_time bigint, received_at bigint, kind text, namespace text, event_type text, run_id uuid, payload long};

-- name: put_stream_schemas
-- Keep where the schemas of streams are.
INSERT INTO stream_schemas (dataset_id, location)
{rows dataset_id uuid, location text}
ON CONFLICT (dataset_id) DO UPDATE SET location = excluded.location;

-- name: add_event_counts
-- Count events by hour and type.
INSERT INTO event_counts (hour, event_type, total)
{rows hour bigint, event_type text, total bigint}
ON CONFLICT (hour, event_type) DO UPDATE SET total = event_counts.total + excluded.total;

-- name: add_tallies
-- Count visible datasets and jobs.
INSERT INTO tallies (kind, namespace, state, total)
{rows kind text, namespace text, state text, total bigint}
ON CONFLICT (kind, namespace, state) DO UPDATE SET total = tallies.total + excluded.total;

-- name: put_search_docs
-- Write what datasets and jobs are found by and shown as.
INSERT INTO search_docs (id, kind, namespace, name, hidden, body)
{rows id uuid, kind text, namespace text, name text, hidden bigint, body text}
ON CONFLICT (id) DO UPDATE SET hidden = excluded.hidden, body = excluded.body;
