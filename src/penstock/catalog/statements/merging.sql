-- The merge of two datasets, when a second name turns out to have a history of its own. Dataset
-- :old is merged into :new.

-- name: kept_datasets_among
-- Find the datasets that other rooms refer to.
SELECT k.value FROM {each ids uuid AS k}
WHERE EXISTS (SELECT 1 FROM kept_datasets d WHERE d.id = k.value);

-- name: runs_that_wrote_both
-- Find the runs that wrote both datasets, with the version of each.
SELECT o.run_id, o.id, w.version_id
FROM dataset_versions o
JOIN run_datasets w ON w.run_id = o.run_id AND w.role = 'OUTPUT' AND w.dataset_id = :new
WHERE o.dataset_id = :old;

-- name: runs_that_read_both
-- Find the runs that read both datasets.
SELECT u.run_id
FROM dataset_versions o
JOIN run_datasets u ON u.version_id = o.id AND u.role = 'INPUT' AND u.dataset_id = :old
JOIN run_datasets w ON w.run_id = u.run_id AND w.role = 'INPUT' AND w.dataset_id = :new
WHERE o.dataset_id = :old;

-- name: forget_run_dataset
-- Delete one input or output of a run.
DELETE FROM run_datasets WHERE run_id = :run_id AND role = :role AND dataset_id = :dataset_id;

-- name: pin_other_version
-- Pin the readers of one version to another one.
UPDATE run_datasets SET version_id = :version_id, dataset_id = :dataset_id
WHERE version_id = :was AND role = 'INPUT';

-- name: forget_version
-- Delete a version that another one has replaced.
DELETE FROM dataset_versions WHERE id = :id;

-- name: move_written
-- Move outputs of runs to the other dataset.
UPDATE run_datasets SET dataset_id = :new
WHERE role = 'OUTPUT' AND dataset_id = :old
  AND run_id IN (SELECT v.run_id FROM dataset_versions v WHERE v.dataset_id = :old AND v.run_id IS NOT NULL);

-- name: move_read
-- Move inputs of runs to the other dataset.
UPDATE run_datasets SET dataset_id = :new
WHERE role = 'INPUT' AND dataset_id = :old
  AND version_id IN (SELECT v.id FROM dataset_versions v WHERE v.dataset_id = :old);

-- name: move_versions_of_dataset
-- Number the versions of one dataset after those of the other. A physical name and a source that
-- were never stated follow from the dataset's name.
UPDATE dataset_versions SET dataset_id = :new, number = number + :last,
    physical_name = CASE WHEN physical_name = :old_name THEN :new_name ELSE physical_name END,
    source_name = CASE WHEN source_name = :old_source THEN :new_source ELSE source_name END
WHERE dataset_id = :old;

-- name: version_numbers
-- List the versions of a dataset in the order of their numbers.
SELECT id, number, unconfirmed FROM dataset_versions WHERE dataset_id = :dataset_id ORDER BY number;

-- name: number_version
-- Give a version another number.
UPDATE dataset_versions SET number = :number WHERE id = :id;

-- name: move_column_sets
-- Move column lineage to the other dataset.
UPDATE column_edges SET dataset_id = :new
WHERE set_id IN (SELECT v.column_set_id FROM dataset_versions v
                 WHERE v.dataset_id = :old AND v.column_set_id IS NOT NULL
                 UNION ALL
                 SELECT d.declared_column_set_id FROM datasets d
                 WHERE d.id = :old AND d.declared_column_set_id IS NOT NULL);

-- name: move_facet_sets
-- Move inherited facets to the other dataset.
UPDATE facet_sets SET dataset_id = :new
WHERE id IN (SELECT v.inherited_set_id FROM dataset_versions v
             WHERE v.dataset_id = :old AND v.inherited_set_id IS NOT NULL);

-- name: move_quality_reports
-- Move reports to the other dataset.
UPDATE quality_reports SET dataset_id = :new
WHERE version_id IN (SELECT v.id FROM dataset_versions v WHERE v.dataset_id = :old);

-- name: report_on_other_version
-- Move the reports on one version to another one.
UPDATE quality_reports SET version_id = :version_id, dataset_id = :dataset_id WHERE version_id = :was;

-- name: forget_quality_report
-- Delete the report of a run on one side.
DELETE FROM quality_reports WHERE run_id = :run_id AND role = :role AND dataset_id = :dataset_id;

-- name: oldest_published_versions
-- List the versions of a dataset that were published first, oldest first.
SELECT {columns dataset_versions v}
FROM dataset_versions v
WHERE v.dataset_id = :dataset_id AND v.published_at IS NOT NULL
ORDER BY v.published_at, v.id
LIMIT :most;

-- name: copy_column_inputs
-- Copy column edges that start at one dataset to the other.
INSERT INTO column_edges (set_id, dataset_id, field, input_dataset_id, input_field, description, type, indirect)
SELECT e.set_id, e.dataset_id, e.field, :new, e.input_field, e.description, e.type, e.indirect
FROM column_edges e WHERE e.input_dataset_id = :old
ON CONFLICT (set_id, field, input_dataset_id, input_field) DO NOTHING;

-- name: forget_column_inputs
-- Delete the column edges that start at a dataset.
DELETE FROM column_edges WHERE input_dataset_id = :old;

-- name: move_aliases
-- Move second names to the other dataset.
UPDATE dataset_aliases SET dataset_id = :new WHERE dataset_id = :old;

-- name: edges_of_dataset
-- Find the edges of all jobs to a dataset.
SELECT {columns job_edges} FROM job_edges WHERE dataset_id = :dataset_id;

-- name: give_runs_other_shape
-- Move the runs with one version of a job to another version.
UPDATE runs SET job_version_id = :version_id WHERE job_id = :job_id AND job_version_id = :was;

-- name: forget_dataset
-- Delete a dataset that was merged into another one.
DELETE FROM datasets WHERE id = :id;

-- name: forget_sighting
-- Delete the times of its readers' reports.
DELETE FROM dataset_sightings WHERE dataset_id = :id;

-- name: forget_search_doc
-- Delete it from search.
DELETE FROM search_docs WHERE id = :id;
