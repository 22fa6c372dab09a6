-- Deletion of old rows. The views run_needs and version_needs have the time until which each row
-- is needed. Pages are read while others write, so each row is checked again where it is
-- deleted.

-- name: prune_events
-- Delete the oldest events of a kind before a time, and return their times and types.
DELETE FROM events
WHERE id IN (SELECT e.id FROM events e WHERE e.kind = :kind AND e.event_time < :cutoff
             ORDER BY e.event_time, e.id LIMIT :most)
RETURNING event_time, event_type

-- name: drop_empty_event_counts
-- Delete hours without events.
DELETE FROM event_counts WHERE hour < :cutoff AND total = 0

-- name: prunable_runs
-- Read a page of the runs that are not needed any more, each with the number of its versions.
SELECT r.job_id, r.ended_at, r.id,
       (SELECT COUNT(*) FROM run_datasets w WHERE w.run_id = r.id AND w.role = 'OUTPUT')
FROM run_needs r
WHERE (r.job_id, r.ended_at, r.id) > (:job_id, :ended_at, :id)
  AND r.ended_at < :cutoff AND r.needed_until < :cutoff
ORDER BY r.job_id, r.ended_at, r.id
LIMIT :most

-- name: runs_still_prunable
-- Find the runs that are still not needed, with their jobs.
SELECT r.id, r.job_id FROM {each ids uuid AS k} JOIN run_needs r ON r.id = k.value
WHERE r.needed_until < :cutoff

-- name: delete_versions_of_runs
-- Delete the versions that these runs wrote.
DELETE FROM dataset_versions
WHERE id IN (SELECT w.version_id FROM {each ids uuid AS k}
             JOIN run_datasets w ON w.run_id = k.value AND w.role = 'OUTPUT')
RETURNING id, dataset_id

-- name: delete_reads_of_versions
-- Delete the inputs with these versions.
DELETE FROM run_datasets
WHERE role = 'INPUT' AND version_id IN (SELECT k.value FROM {each ids uuid AS k})

-- name: delete_run_datasets
-- Delete the inputs and outputs of these runs.
DELETE FROM run_datasets WHERE run_id IN (SELECT k.value FROM {each ids uuid AS k})

-- name: leave_parents
-- Remove the parent of the children of these runs.
UPDATE runs SET parent_run_id = NULL
WHERE parent_run_id IN (SELECT k.value FROM {each ids uuid AS k})

-- name: delete_runs
-- Delete these runs.
DELETE FROM runs WHERE id IN (SELECT k.value FROM {each ids uuid AS k})

-- name: subtract_runs
-- Subtract runs from the counts of jobs.
UPDATE jobs SET run_count = run_count - gone.total
FROM ({rows id uuid, total bigint}) AS gone
WHERE jobs.id = gone.id

-- name: subtract_versions
-- Subtract versions from the counts of datasets.
UPDATE datasets SET version_count = version_count - gone.total
FROM ({rows id uuid, total bigint}) AS gone
WHERE datasets.id = gone.id

-- name: prunable_declared_versions
-- Read a page of the versions declared without a run that are not needed any more.
SELECT v.created_at, v.id FROM version_needs v
WHERE (v.created_at, v.id) > (:created_at, :id)
  AND v.created_at < :cutoff AND v.origin = 'DECLARED' AND v.needed_until < :cutoff
ORDER BY v.created_at, v.id
LIMIT :most

-- name: versions_still_prunable
-- Find the versions that are still not needed, with their datasets.
SELECT v.id, v.dataset_id FROM {each ids uuid AS k} JOIN version_needs v ON v.id = k.value
WHERE v.needed_until < :cutoff

-- name: delete_versions
-- Delete these versions.
DELETE FROM dataset_versions WHERE id IN (SELECT k.value FROM {each ids uuid AS k})

-- name: jobs_with_versions
-- Read a page of the jobs with more than one version.
SELECT id FROM jobs WHERE id > :after AND version_count > 1 ORDER BY id LIMIT :most

-- name: prunable_job_versions
-- Find old versions of these jobs that are not current and belong to no run that is still
-- needed.
SELECT v.id, v.job_id
FROM {each jobs uuid AS k}
JOIN jobs j ON j.id = k.value
JOIN job_versions v ON v.job_id = j.id
WHERE v.created_at < :cutoff AND (v.declared_at IS NULL OR v.declared_at < :cutoff)
  AND (j.current_version_id IS NULL OR v.id <> j.current_version_id)
  AND v.id NOT IN (SELECT r.job_version_id
                   FROM {each jobs uuid AS h} JOIN run_needs r ON r.job_id = h.value
                   WHERE r.job_version_id IS NOT NULL
                     AND (r.ended_at IS NULL OR r.ended_at >= :cutoff
                          OR r.needed_until >= :cutoff))

-- name: job_versions_in_use
-- Find the versions of these jobs that are current or belong to a run.
SELECT r.job_version_id FROM {each jobs uuid AS k} JOIN runs r ON r.job_id = k.value
WHERE r.job_version_id IS NOT NULL
UNION
SELECT j.current_version_id FROM {each jobs uuid AS h} JOIN jobs j ON j.id = h.value
WHERE j.current_version_id IS NOT NULL

-- name: delete_job_versions
-- Delete these job versions.
DELETE FROM job_versions WHERE id IN (SELECT k.value FROM {each ids uuid AS k})

-- name: subtract_job_versions
-- Subtract versions from the counts of jobs.
UPDATE jobs SET version_count = version_count - gone.total
FROM ({rows id uuid, total bigint}) AS gone
WHERE jobs.id = gone.id

-- name: prunable_column_sets
-- Read a page of the sets of column lineage that only unneeded versions have, and that no
-- dataset was last declared with.
SELECT DISTINCT e.set_id FROM column_edges e
WHERE e.set_id > :after
  AND NOT EXISTS (SELECT 1 FROM version_needs v
                  WHERE v.dataset_id = e.dataset_id AND v.column_set_id = e.set_id
                    AND v.needed_until >= :cutoff)
  AND NOT EXISTS (SELECT 1 FROM datasets d
                  WHERE d.id = e.dataset_id AND d.declared_column_set_id = e.set_id)
ORDER BY e.set_id
LIMIT :most

-- name: column_sets_still_unused
-- Find the sets of column lineage that no version has, and no dataset was last declared with.
SELECT DISTINCT e.set_id FROM {each ids uuid AS k} JOIN column_edges e ON e.set_id = k.value
WHERE NOT EXISTS (SELECT 1 FROM dataset_versions v
                  WHERE v.dataset_id = e.dataset_id AND v.column_set_id = e.set_id)
  AND NOT EXISTS (SELECT 1 FROM datasets d
                  WHERE d.id = e.dataset_id AND d.declared_column_set_id = e.set_id)

-- name: delete_column_sets
-- Delete these sets of column lineage.
DELETE FROM column_edges WHERE set_id IN (SELECT k.value FROM {each ids uuid AS k})

-- name: delete_quality_reports
-- Delete the reports of these runs on quality.
DELETE FROM quality_reports WHERE run_id IN (SELECT k.value FROM {each ids uuid AS k})

-- name: delete_quality_reports_on_versions
-- Delete the reports on the quality of these versions.
DELETE FROM quality_reports WHERE version_id IN (SELECT k.value FROM {each ids uuid AS k})

-- name: prunable_facet_sets
-- Read a page of the sets of inherited facets that only unneeded versions have.
SELECT f.id FROM facet_sets f
WHERE f.id > :after
  AND NOT EXISTS (SELECT 1
                  FROM dataset_versions v JOIN version_needs n ON n.id = v.id
                  WHERE v.inherited_set_id = f.id AND n.needed_until >= :cutoff)
ORDER BY f.id
LIMIT :most

-- name: facet_sets_still_unused
-- Find the sets of inherited facets that no version has.
SELECT f.id FROM {each ids uuid AS k} JOIN facet_sets f ON f.id = k.value
WHERE NOT EXISTS (SELECT 1 FROM dataset_versions v WHERE v.inherited_set_id = f.id)

-- name: delete_facet_sets
-- Delete these sets of inherited facets.
DELETE FROM facet_sets WHERE id IN (SELECT k.value FROM {each ids uuid AS k})
