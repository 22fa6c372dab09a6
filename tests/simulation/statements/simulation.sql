-- Whole tables, for tests that compare everything the catalog holds.

-- name: every_namespace
-- All namespaces.
SELECT name, owner_name, description, hidden, created_at, updated_at, hidden_at FROM namespaces;

-- name: every_source
-- All sources.
SELECT name, type, connection_url, description, created_at, updated_at FROM sources;

-- name: every_tag
-- All tags.
SELECT name, description FROM tags;

-- name: every_dataset
-- All datasets.
SELECT id, namespace, name, type, physical_name, source_name, description, description_stamp, current_version_id, published_at, latest_version_id, latest_number, version_count, implied_version_id, observed, tags, field_tags, lifecycle, hidden, hidden_at, created_at, updated_at, declared, declared_stamps, declared_column_set_id
FROM datasets;

-- name: every_alias
-- All second names.
SELECT id, namespace, name, dataset_id, type FROM dataset_aliases;

-- name: every_version
-- All dataset versions.
SELECT id, dataset_id, number, origin, run_id, schema_id, fields, facets, stamps, type, physical_name, source_name, description, lifecycle, column_set_id, created_at, published_at, unconfirmed, inherited_set_id
FROM dataset_versions;

-- name: every_job
-- All jobs.
SELECT id, namespace, name, type, type_stamp, description, description_stamp, location, location_stamp, parent_job_id, parent_stamp, current_version_id, version_at, latest_run_id, latest_run_at, latest_run_state, run_count, version_count, tags, labels, facets, stamps, hidden, hidden_at, created_at, updated_at
FROM jobs;

-- name: every_job_version
-- All job versions.
SELECT id, job_id, location, inputs, outputs, latest_run_id, created_at, declared_at FROM job_versions;

-- name: every_edge
-- All edges of jobs.
SELECT job_id, role, dataset_id, current, first_at FROM job_edges;

-- name: every_run
-- All runs.
SELECT id, external_id, job_id, job_version_id, parent_run_id, state, nominal_start, nominal_end, args, started_at, ended_at, facets, job_facets, stamps, created_at, updated_at
FROM runs;

-- name: every_run_dataset
-- All that runs read and wrote.
SELECT run_id, role, dataset_id, version_id, facets, stamps FROM run_datasets;

-- name: every_column_edge
-- All column lineage that a version has, or that a dataset was last declared with.
SELECT set_id, dataset_id, field, input_dataset_id, input_field, description, type, indirect FROM column_edges e
WHERE EXISTS (SELECT 1 FROM dataset_versions v WHERE v.column_set_id = e.set_id)
   OR EXISTS (SELECT 1 FROM datasets d WHERE d.declared_column_set_id = e.set_id);

-- name: every_quality_report
-- All reports of runs on the quality of versions.
SELECT run_id, role, dataset_id, version_id, at FROM quality_reports;

-- name: every_facet_set
-- All sets of inherited facets that a version has.
SELECT id, dataset_id, facets, stamps FROM facet_sets f
WHERE EXISTS (SELECT 1 FROM dataset_versions v WHERE v.inherited_set_id = f.id);

-- name: every_search_doc
-- All that things are found by and shown as.
SELECT id, kind, namespace, name, hidden, body FROM search_docs;

-- name: every_event
-- All events in the order of their arrival.
SELECT event_time, received_at, kind, namespace, event_type, run_id, payload FROM events ORDER BY id;

-- name: every_event_count
-- All counts of events.
SELECT hour, event_type, total FROM event_counts WHERE total <> 0;

-- name: every_tally
-- All counts of visible things.
SELECT kind, namespace, state, total FROM tallies WHERE total <> 0;

-- name: put_audit_entries
-- Write entries of the audit log without their chain.
INSERT INTO audit_log (at, who, action, target, detail, address, hash)
SELECT r.at, r.who, r.action, r.target, r.detail, r.address, r.hash
FROM ({rows id bigint, at bigint, who text, action text, target text, detail text, address text, hash text}) r
