-- Reads of single rows and of lists. A list takes two steps: find the ids of the page, in the
-- order of an index, then read their rows set by set.

-- name: read_namespaces
-- Read a page of namespaces, by name.
SELECT name, owner_name, description, hidden, created_at, updated_at
FROM namespaces ORDER BY name LIMIT :limit OFFSET :offset

-- name: read_namespace
-- Read one namespace.
SELECT name, owner_name, description, hidden, created_at, updated_at
FROM namespaces WHERE name = :name

-- name: read_sources
-- Read a page of sources, by name.
SELECT {columns sources}
FROM sources ORDER BY name LIMIT :limit OFFSET :offset

-- name: read_sources_of_namespace
-- Read a page of the sources of a namespace's datasets, by name.
SELECT {columns sources s}
FROM sources s
WHERE EXISTS (SELECT 1 FROM datasets d WHERE d.namespace = :namespace AND d.source_name = s.name)
ORDER BY s.name LIMIT :limit OFFSET :offset

-- name: read_source_of_namespace
-- Read one source, if a dataset of a namespace is in it.
SELECT {columns sources s}
FROM sources s
WHERE s.name = :name AND EXISTS (
    SELECT 1 FROM datasets d WHERE d.namespace = :namespace AND d.source_name = s.name
)

-- name: read_source
-- Read one source.
SELECT {columns sources}
FROM sources WHERE name = :name

-- name: read_tags
-- Read a page of tags, by name.
SELECT name, description FROM tags ORDER BY name LIMIT :limit OFFSET :offset

-- name: read_tags_of_namespace
-- Read a page of the tags that a namespace uses, by name.
SELECT t.name, t.description
FROM tag_uses u JOIN tags t ON t.name = u.tag
WHERE u.namespace = :namespace
ORDER BY u.tag LIMIT :limit OFFSET :offset

-- name: read_tag
-- Read one tag.
SELECT name, description FROM tags WHERE name = :name

-- name: read_tallies
-- Count the visible datasets or jobs, by state.
SELECT state, CAST(SUM(total) AS BIGINT) FROM tallies WHERE kind = :kind GROUP BY state

-- name: read_tallies_of_namespace
-- Count the visible datasets or jobs of a namespace, by state.
SELECT state, total FROM tallies WHERE kind = :kind AND namespace = :namespace

-- name: read_dataset_ids
-- Find the datasets on a page of a namespace's list, by name.
SELECT id FROM datasets
WHERE namespace = :namespace AND hidden = 0
ORDER BY name LIMIT :limit OFFSET :offset

-- name: read_dataset_by_name
-- Find the dataset with a name, its own or a second one; id is the digest of that name. The last
-- column is 1 if its own current version drops it, and no administrator has hidden it since.
SELECT d.id, d.hidden, d.version_count,
       CASE WHEN d.lifecycle = 'DROP' AND d.hidden_at = d.published_at THEN 1 ELSE 0 END
FROM datasets d
WHERE d.id = COALESCE((SELECT a.dataset_id FROM dataset_aliases a WHERE a.id = :id), :id)

-- name: read_datasets
-- Read datasets, each with the version to show: the current one, else the latest.
SELECT d.id, d.namespace, d.name, d.type, d.physical_name, d.source_name, d.description,
       d.current_version_id, d.published_at, d.observed, d.tags, d.field_tags, d.lifecycle,
       d.hidden, d.created_at, d.updated_at, d.declared, d.declared_stamps,
       d.declared_column_set_id,
       v.number, v.schema_id, v.fields, v.facets, v.stamps, v.column_set_id, l.location, f.facets,
       f.stamps, v.id, w.facets
FROM {each ids uuid AS k}
JOIN datasets d ON d.id = k.value
LEFT JOIN stream_schemas l ON l.dataset_id = d.id
LEFT JOIN dataset_versions v ON v.id = COALESCE(d.current_version_id, d.latest_version_id)
LEFT JOIN facet_sets f ON f.id = v.inherited_set_id
LEFT JOIN run_datasets w ON w.run_id = v.run_id AND w.role = 'OUTPUT' AND w.dataset_id = v.dataset_id

-- name: read_column_edges
-- Read sets of column lineage; a name is missing where the dataset has no other name.
SELECT e.set_id, e.field, e.input_dataset_id, d.namespace, d.name, e.input_field, e.description, e.type, e.indirect
FROM {each ids uuid AS k}
JOIN column_edges e ON e.set_id = k.value
LEFT JOIN datasets d ON d.id = e.input_dataset_id
ORDER BY e.set_id, e.field

-- name: read_aliases
-- Read the second names of a dataset.
SELECT namespace, name, type FROM dataset_aliases
WHERE dataset_id = :id ORDER BY namespace, name

-- name: read_version_ids
-- Find the versions on a page of a dataset's history, newest first.
SELECT id FROM dataset_versions
WHERE dataset_id = :dataset_id ORDER BY number DESC LIMIT :limit OFFSET :offset

-- name: read_version_by_number
-- Find the version of a dataset with a number.
SELECT id FROM dataset_versions WHERE dataset_id = :dataset_id AND number = :number

-- name: read_versions
-- Read dataset versions, each with the facets that its dataset states for all of them.
SELECT v.id, v.dataset_id, d.namespace, d.name, v.number, v.run_id, v.schema_id, v.fields,
       v.facets, v.type, v.physical_name, v.source_name, v.description, v.lifecycle, v.created_at,
       d.current_version_id, d.observed, d.tags, d.field_tags, v.unconfirmed, l.location, f.facets,
       w.facets
FROM {each ids uuid AS k}
JOIN dataset_versions v ON v.id = k.value
JOIN datasets d ON d.id = v.dataset_id
LEFT JOIN stream_schemas l ON l.dataset_id = d.id
LEFT JOIN facet_sets f ON f.id = v.inherited_set_id
LEFT JOIN run_datasets w ON w.run_id = v.run_id AND w.role = 'OUTPUT' AND w.dataset_id = v.dataset_id

-- name: read_quality_reports
-- Read the reports on the quality of versions: the newest on each, newest first.
SELECT q.version_id, d.facets
FROM {each ids uuid AS k}
JOIN quality_reports q ON q.version_id = k.value
JOIN run_datasets d ON d.run_id = q.run_id AND d.role = q.role AND d.dataset_id = q.dataset_id
WHERE q.run_id IN (
    SELECT n.run_id FROM quality_reports n
    WHERE n.version_id = k.value
    ORDER BY n.at DESC, n.run_id DESC
    LIMIT :most
)
ORDER BY q.at DESC, q.run_id DESC

-- name: read_job_by_id
-- Check that a job exists, and count the rows of its lists.
SELECT id, hidden, run_count, version_count FROM jobs WHERE id = :id

-- name: child_jobs_by_ids
-- Find the jobs that have a parent, with the names of their parents and grandparents.
SELECT j.id, j.namespace, j.name, j.hidden, j.created_at, p.name, g.name
FROM {each ids uuid AS k}
JOIN jobs j ON j.id = k.value
JOIN jobs p ON p.id = j.parent_job_id
LEFT JOIN jobs g ON g.id = p.parent_job_id

-- name: read_jobs
-- Read jobs, each with its parent's name and the facets that its newest run reported of it.
SELECT j.id, j.namespace, j.name, j.type, j.description, j.location, j.parent_job_id,
       j.current_version_id, j.tags, j.labels, j.facets, j.created_at, j.updated_at,
       p.name, r.job_facets, j.stamps, r.stamps
FROM {each ids uuid AS k}
JOIN jobs j ON j.id = k.value
LEFT JOIN jobs p ON p.id = j.parent_job_id
LEFT JOIN runs r ON r.id = j.latest_run_id

-- name: read_job_edges
-- Find the current inputs and outputs of jobs.
SELECT e.job_id, e.role, d.namespace, d.name
FROM {each ids uuid AS k}
JOIN job_edges e ON e.job_id = k.value AND e.current = 1
JOIN datasets d ON d.id = e.dataset_id
ORDER BY d.namespace, d.name

-- name: read_job_version_ids
-- Find the versions on a page of a job's history, newest first.
SELECT id FROM job_versions
WHERE job_id = :job_id ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset

-- name: read_job_versions
-- Read job versions.
SELECT v.id, v.job_id, j.namespace, j.name, v.location, v.inputs, v.outputs, v.latest_run_id,
       v.created_at
FROM {each ids uuid AS k}
JOIN job_versions v ON v.id = k.value
JOIN jobs j ON j.id = v.job_id

-- name: read_run_ids
-- Find the runs on a page of a job's runs, newest first.
SELECT id FROM runs
WHERE job_id = :job_id ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset

-- name: read_runs
-- Read runs, each with its job and its parent. A run without events of its own runs while a
-- child of it does.
SELECT r.id, j.namespace, j.name, r.job_version_id,
       CASE WHEN r.state = 'NEW' AND r.stamps = '{}' AND EXISTS (
           SELECT 1 FROM runs c WHERE c.parent_run_id = r.id AND c.state = 'RUNNING'
       ) THEN 'RUNNING' ELSE r.state END,
       r.nominal_start, r.nominal_end,
       r.args, r.started_at, r.ended_at, r.facets, r.created_at, r.updated_at,
       pr.id, pj.namespace, pj.name
FROM {each ids uuid AS k}
JOIN runs r ON r.id = k.value
JOIN jobs j ON j.id = r.job_id
LEFT JOIN runs pr ON pr.id = r.parent_run_id
LEFT JOIN jobs pj ON pj.id = pr.job_id

-- name: read_run_datasets
-- Find the dataset versions that runs read and wrote.
SELECT rd.run_id, rd.role, d.namespace, d.name, rd.version_id, v.number, rd.facets
FROM {each ids uuid AS k}
JOIN run_datasets rd ON rd.run_id = k.value
JOIN datasets d ON d.id = rd.dataset_id
LEFT JOIN dataset_versions v ON v.id = rd.version_id
ORDER BY d.namespace, d.name

-- name: read_run_facets
-- Read the facets of a run and of its job, as the run reported them.
SELECT id, facets, job_facets FROM runs WHERE id = :id

-- name: read_events_of_run
-- Read a page of the events about one run; sign is 1 for the oldest first, -1 for the newest.
SELECT payload FROM events
WHERE run_id = :run_id AND event_time >= :after AND event_time < :before
ORDER BY event_time * :sign, id * :sign LIMIT :limit OFFSET :offset

-- name: count_events_of_namespace
-- Count the events of these kinds about one namespace in a time range.
SELECT COUNT(*)
FROM {each kinds text AS k}
CROSS JOIN events e
WHERE e.namespace = :namespace AND e.kind = k.value
  AND e.event_time >= :after AND e.event_time < :before

-- name: count_events_of_run
-- Count the events about one run in a time range.
SELECT COUNT(*) FROM events
WHERE run_id = :run_id AND event_time >= :after AND event_time < :before

-- name: count_events
-- Count the events of these kinds in a time range; meant for a part of an hour.
SELECT COUNT(*)
FROM {each kinds text AS k}
CROSS JOIN events e
WHERE e.kind = k.value AND e.event_time >= :after AND e.event_time < :before

-- name: count_events_by_hours
-- Count the events of these kinds in a range of whole hours. Events of runs are counted under
-- their type, other events under their kind.
SELECT CAST(COALESCE(SUM(total), 0) AS BIGINT) FROM event_counts
WHERE hour >= :after AND hour < :before
  AND CASE WHEN event_type IN ('JOB', 'DATASET') THEN event_type ELSE 'RUN' END {in kinds text}
