-- Reads of single things and of lists. A list is two steps: which ids are on the page, in the
-- order of an index, and then everything about them, set by set.

-- name: read_namespaces
-- A page of namespaces, by name.
SELECT name, owner_name, description, hidden, created_at, updated_at
FROM namespaces ORDER BY name LIMIT :limit OFFSET :offset

-- name: read_namespace
-- One namespace.
SELECT name, owner_name, description, hidden, created_at, updated_at
FROM namespaces WHERE name = :name

-- name: read_sources
-- A page of sources, by name.
SELECT name, type, connection_url, description, created_at, updated_at
FROM sources ORDER BY name LIMIT :limit OFFSET :offset

-- name: read_sources_of_namespace
-- A page of the sources of a namespace's datasets, by name.
SELECT s.name, s.type, s.connection_url, s.description, s.created_at, s.updated_at
FROM sources s
WHERE EXISTS (SELECT 1 FROM datasets d WHERE d.namespace = :namespace AND d.source_name = s.name)
ORDER BY s.name LIMIT :limit OFFSET :offset

-- name: read_source_of_namespace
-- One source, if a dataset of a namespace is in it.
SELECT s.name, s.type, s.connection_url, s.description, s.created_at, s.updated_at
FROM sources s
WHERE s.name = :name AND EXISTS (
    SELECT 1 FROM datasets d WHERE d.namespace = :namespace AND d.source_name = s.name
)

-- name: read_source
-- One source.
SELECT name, type, connection_url, description, created_at, updated_at
FROM sources WHERE name = :name

-- name: read_tags
-- A page of tags, by name.
SELECT name, description FROM tags ORDER BY name LIMIT :limit OFFSET :offset

-- name: read_tags_of_namespace
-- A page of the tags that a namespace uses, by name.
SELECT t.name, t.description
FROM tag_uses u JOIN tags t ON t.name = u.tag
WHERE u.namespace = :namespace
ORDER BY u.tag LIMIT :limit OFFSET :offset

-- name: read_tag
-- One tag.
SELECT name, description FROM tags WHERE name = :name

-- name: read_tallies
-- How many visible datasets or jobs there are, by state.
SELECT state, CAST(SUM(total) AS BIGINT) FROM tallies WHERE kind = :kind GROUP BY state

-- name: read_tallies_of_namespace
-- How many visible datasets or jobs a namespace has, by state.
SELECT state, total FROM tallies WHERE kind = :kind AND namespace = :namespace

-- name: read_dataset_ids
-- Which datasets are on a page of a namespace's list, by name.
SELECT id FROM datasets
WHERE namespace = :namespace AND hidden = 0
ORDER BY name LIMIT :limit OFFSET :offset

-- name: read_dataset_by_name
-- The dataset that goes by a name, its own or a second one; id is the digest of that name. The
-- last column is 1 where its own current version drops it, and no administrator has hidden it since.
SELECT d.id, d.hidden, d.version_count,
       CASE WHEN d.lifecycle = 'DROP' AND d.hidden_at = d.published_at THEN 1 ELSE 0 END
FROM datasets d
WHERE d.id = COALESCE((SELECT a.dataset_id FROM dataset_aliases a WHERE a.id = :id), :id)

-- name: read_datasets
-- Datasets, each with the version that it shows: the current one, else the latest.
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
-- Which fields are made from which, for sets of column lineage; without a name where nobody named
-- the dataset otherwise.
SELECT e.set_id, e.field, e.input_dataset_id, d.namespace, d.name, e.input_field, e.description, e.type, e.indirect
FROM {each ids uuid AS k}
JOIN column_edges e ON e.set_id = k.value
LEFT JOIN datasets d ON d.id = e.input_dataset_id
ORDER BY e.set_id, e.field

-- name: read_aliases
-- The second names of a dataset.
SELECT namespace, name, type FROM dataset_aliases
WHERE dataset_id = :id ORDER BY namespace, name

-- name: read_version_ids
-- Which versions are on a page of a dataset's history, newest first.
SELECT id FROM dataset_versions
WHERE dataset_id = :dataset_id ORDER BY number DESC LIMIT :limit OFFSET :offset

-- name: read_version_by_number
-- The version of a dataset that has a number.
SELECT id FROM dataset_versions WHERE dataset_id = :dataset_id AND number = :number

-- name: read_versions
-- Dataset versions, each with what its dataset says of all of them.
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
-- What runs reported on the quality of versions: the newest reports on each, newest first.
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
-- Whether a job is there, and how long its lists are.
SELECT id, hidden, run_count, version_count FROM jobs WHERE id = :id

-- name: child_jobs_by_ids
-- Those of these jobs that have a parent, with the names of their parents and grandparents.
SELECT j.id, j.namespace, j.name, j.hidden, j.created_at, p.name, g.name
FROM {each ids uuid AS k}
JOIN jobs j ON j.id = k.value
JOIN jobs p ON p.id = j.parent_job_id
LEFT JOIN jobs g ON g.id = p.parent_job_id

-- name: read_jobs
-- Jobs, each with its parent's name and what its newest run says of it.
SELECT j.id, j.namespace, j.name, j.type, j.description, j.location, j.parent_job_id,
       j.current_version_id, j.tags, j.labels, j.facets, j.created_at, j.updated_at,
       p.name, r.job_facets, j.stamps, r.stamps
FROM {each ids uuid AS k}
JOIN jobs j ON j.id = k.value
LEFT JOIN jobs p ON p.id = j.parent_job_id
LEFT JOIN runs r ON r.id = j.latest_run_id

-- name: read_job_edges
-- What jobs read and write now.
SELECT e.job_id, e.role, d.namespace, d.name
FROM {each ids uuid AS k}
JOIN job_edges e ON e.job_id = k.value AND e.current = 1
JOIN datasets d ON d.id = e.dataset_id
ORDER BY d.namespace, d.name

-- name: read_job_version_ids
-- Which versions are on a page of a job's history, newest first.
SELECT id FROM job_versions
WHERE job_id = :job_id ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset

-- name: read_job_versions
-- Job versions.
SELECT v.id, v.job_id, j.namespace, j.name, v.location, v.inputs, v.outputs, v.latest_run_id,
       v.created_at
FROM {each ids uuid AS k}
JOIN job_versions v ON v.id = k.value
JOIN jobs j ON j.id = v.job_id

-- name: read_run_ids
-- Which runs are on a page of a job's runs, newest first.
SELECT id FROM runs
WHERE job_id = :job_id ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset

-- name: read_runs
-- Runs, each with its job and its parent. A run that has reported nothing itself runs while a child
-- of it does.
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
-- Which dataset versions runs read and wrote.
SELECT rd.run_id, rd.role, d.namespace, d.name, rd.version_id, v.number, rd.facets
FROM {each ids uuid AS k}
JOIN run_datasets rd ON rd.run_id = k.value
JOIN datasets d ON d.id = rd.dataset_id
LEFT JOIN dataset_versions v ON v.id = rd.version_id
ORDER BY d.namespace, d.name

-- name: read_run_facets
-- The facets of a run and of its job, as the run reported them.
SELECT id, facets, job_facets FROM runs WHERE id = :id

-- name: read_events_of_run
-- A page of what was received about one run; sign is 1 for the oldest first, -1 for the newest.
SELECT payload FROM events
WHERE run_id = :run_id AND event_time >= :after AND event_time < :before
ORDER BY event_time * :sign, id * :sign LIMIT :limit OFFSET :offset

-- name: count_events_of_namespace
-- The number of events of these kinds about one namespace in a time range.
SELECT COUNT(*)
FROM {each kinds text AS k}
CROSS JOIN events e
WHERE e.namespace = :namespace AND e.kind = k.value
  AND e.event_time >= :after AND e.event_time < :before

-- name: count_events_of_run
-- How many events about one run are in a time range.
SELECT COUNT(*) FROM events
WHERE run_id = :run_id AND event_time >= :after AND event_time < :before

-- name: count_events
-- The number of events of these kinds in a time range; meant for a part of an hour.
SELECT COUNT(*)
FROM {each kinds text AS k}
CROSS JOIN events e
WHERE e.kind = k.value AND e.event_time >= :after AND e.event_time < :before

-- name: count_events_by_hours
-- The number of events of these kinds in a range of whole hours. Events without a run are counted
-- under their kind, those of runs under their type.
SELECT CAST(COALESCE(SUM(total), 0) AS BIGINT) FROM event_counts
WHERE hour >= :after AND hour < :before
  AND CASE WHEN event_type IN ('JOB', 'DATASET') THEN event_type ELSE 'RUN' END {in kinds text}
