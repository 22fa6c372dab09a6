-- name: walk_by_key
-- Ask for plans that find rows by key; SQLite makes no others.
SELECT 1

-- name: lineage_datasets_named
-- Find the datasets whose names have these ids; a second name wins over a first one.
SELECT k.value, d.id, d.namespace, d.name, d.hidden, d.created_at
FROM {each ids uuid AS k}
LEFT JOIN dataset_aliases a ON a.id = k.value
JOIN datasets d ON d.id = COALESCE(a.dataset_id, k.value)

-- name: lineage_jobs_named
-- Find the jobs with these ids.
SELECT j.id, j.namespace, j.name, j.hidden, j.created_at
FROM {each ids uuid AS k}
JOIN jobs j ON j.id = k.value

-- name: lineage_run_named
-- Find the run with this id.
SELECT id, job_id, ended_at
FROM runs
WHERE id = :id

-- name: lineage_version_numbered
-- Find a version of a dataset by its number.
SELECT id, number, fields, column_set_id, created_at, published_at
FROM dataset_versions
WHERE dataset_id = :dataset AND number = :number

-- name: lineage_version_with_id
-- Find a version of a dataset by its id.
SELECT id, number, fields, column_set_id, created_at, published_at
FROM dataset_versions
WHERE id = :id AND dataset_id = :dataset

-- name: lineage_job_version_with_id
-- Find a version of a job by its id.
SELECT id, inputs, outputs
FROM job_versions
WHERE id = :id AND job_id = :job

-- name: lineage_jobs_beside
-- Find the jobs that read or write these datasets, or once did.
SELECT e.dataset_id, e.role, e.job_id
FROM {each ids uuid AS k}
JOIN job_edges e ON e.dataset_id = k.value AND e.role IN (:role, :other_role)
WHERE e.current >= :current

-- name: lineage_jobs_beside_as_of
-- Find the jobs that had read or written these datasets by a time.
SELECT e.dataset_id, e.role, e.job_id
FROM {each ids uuid AS k}
JOIN job_edges e ON e.dataset_id = k.value AND e.role IN (:role, :other_role)
WHERE e.first_at <= :at

-- name: lineage_edges_of_jobs
-- Find the edges of these jobs, with the names of the visible datasets at the other end.
SELECT e.job_id, e.role, e.dataset_id, d.namespace, d.name
FROM {each ids uuid AS k}
JOIN job_edges e ON e.job_id = k.value
JOIN datasets d ON d.id = e.dataset_id
WHERE e.current >= :current AND e.first_at <= :at
  AND NOT (d.hidden = 1 AND d.hidden_at <= :at AND d.id <> :root)

-- name: lineage_versions_as_of
-- Find the version of each job at a time: the current version if the job had it by then.
-- Otherwise the latest of the version of the last run to end by then, the last version to be
-- stated and, for a stream, the version of the last unfinished run. Only the last time is kept
-- when a version was stated. Before it, a version without a run counts as stated when it was
-- created.
SELECT v.job_id, v.inputs, v.outputs
FROM {each ids uuid AS k}
JOIN jobs j ON j.id = k.value
JOIN job_versions v ON v.id = CASE WHEN j.version_at <= :at THEN j.current_version_id ELSE (
    SELECT c.id
    FROM (
        SELECT ended.id, ended.at
        FROM (
            SELECT r.job_version_id AS id, r.ended_at AS at
            FROM runs r
            WHERE r.job_id = k.value AND r.ended_at <= :at AND r.job_version_id IS NOT NULL
            ORDER BY r.ended_at DESC, r.job_version_id DESC
            LIMIT 1
        ) ended
        UNION ALL
        SELECT stated.id, stated.at
        FROM (
            SELECT w.id, CASE WHEN w.declared_at <= :at THEN w.declared_at ELSE w.created_at END AS at
            FROM job_versions w
            WHERE w.job_id = k.value AND w.created_at <= :at
              AND (w.declared_at <= :at OR w.declared_at > :at AND NOT EXISTS (
                  SELECT 1
                  FROM runs m
                  WHERE m.job_id = k.value AND m.created_at = w.created_at
                    AND m.job_version_id = w.id
              ))
            ORDER BY 2 DESC, w.id DESC
            LIMIT 1
        ) stated
        UNION ALL
        SELECT going.id, going.at
        FROM (
            SELECT r.job_version_id AS id, r.created_at AS at
            FROM runs r
            WHERE j.type = 'STREAM' AND r.job_id = k.value AND r.created_at <= :at
              AND (r.ended_at IS NULL OR r.ended_at > :at) AND r.job_version_id IS NOT NULL
            ORDER BY r.created_at DESC, r.id DESC
            LIMIT 1
        ) going
    ) c
    ORDER BY c.at DESC, c.id DESC
    LIMIT 1
) END

-- name: lineage_unfinished_as_of
-- Find the inputs and outputs of the runs of these jobs that were unfinished at a time. Of runs
-- that have ended since, only the last thousand begun by then are read: there may be any number
-- of others. The plus sign avoids an index of all runs.
SELECT r.job_id, d.role, d.dataset_id
FROM {each ids uuid AS k}
JOIN runs r ON r.job_id = k.value
JOIN run_datasets d ON d.run_id = r.id
WHERE r.ended_at IS NULL AND +r.created_at <= :at
UNION ALL
SELECT r.job_id, d.role, d.dataset_id
FROM {each ids uuid AS k}
JOIN runs r ON r.id IN (
    SELECT b.id
    FROM runs b
    WHERE b.job_id = k.value AND b.created_at <= :at
    ORDER BY b.created_at DESC, b.id DESC
    LIMIT 1000
)
JOIN run_datasets d ON d.run_id = r.id
WHERE r.ended_at > :at

-- name: lineage_visible_datasets
-- Find the names of the datasets that were not deleted by a time.
SELECT d.id, d.namespace, d.name
FROM {each ids uuid AS k}
JOIN datasets d ON d.id = k.value
WHERE NOT (d.hidden = 1 AND d.hidden_at <= :at AND d.id <> :root)

-- name: lineage_dropped_as_of
-- Find the datasets that were dropped at a time and have been created again since: the version
-- current then drops the dataset, and no run had begun to write or read it afterwards, nor had
-- anyone restored it. Whether the current version hides its dataset is in the dataset's own row.
-- Only a hundred writers and readers after the drop are read, because there may be any number.
SELECT d.id
FROM {each ids uuid AS k}
JOIN datasets d ON d.id = k.value
JOIN dataset_versions v ON v.id = (
    SELECT w.id
    FROM dataset_versions w
    WHERE w.dataset_id = k.value AND w.published_at <= :at
    ORDER BY w.published_at DESC, w.id DESC
    LIMIT 1
)
WHERE d.published_at > :at AND v.lifecycle = 'DROP'
  AND NOT (d.hidden_at > v.published_at AND d.hidden_at <= :at)
  AND NOT EXISTS (
      SELECT 1
      FROM (
          SELECT n.created_at
          FROM dataset_versions n
          WHERE n.dataset_id = v.dataset_id AND n.number > v.number
          ORDER BY n.number
          LIMIT 100
      ) written
      WHERE written.created_at > v.published_at AND written.created_at <= :at
  )
  AND NOT EXISTS (
      SELECT 1
      FROM (
          SELECT u.run_id
          FROM run_datasets u
          WHERE u.version_id = v.id AND u.role = 'INPUT'
          LIMIT 100
      ) reading
      JOIN runs r ON r.id = reading.run_id
      WHERE r.created_at > v.published_at AND r.created_at <= :at
  )

-- name: lineage_jobs
-- Find the fields that a graph shows of the visible jobs, each with its newest run. A run
-- without events of its own runs while a child of it does.
SELECT j.id, j.namespace, j.name, j.type, p.name, j.created_at, j.updated_at, j.location,
       j.description, r.id,
       CASE WHEN r.state = 'NEW' AND r.stamps = '{}' AND EXISTS (
           SELECT 1 FROM runs c WHERE c.parent_run_id = r.id AND c.state = 'RUNNING'
       ) THEN 'RUNNING' ELSE r.state END,
       r.created_at, r.updated_at, r.nominal_start, r.nominal_end,
       r.started_at, r.ended_at
FROM {each ids uuid AS k}
JOIN jobs j ON j.id = k.value
LEFT JOIN jobs p ON p.id = j.parent_job_id
LEFT JOIN runs r ON r.id = j.latest_run_id
WHERE NOT (j.hidden = 1 AND j.id <> :root)

-- name: lineage_jobs_as_of
-- Find the fields that a graph shows of the visible jobs, each with its newest run at a time.
SELECT j.id, j.namespace, j.name, j.type, p.name, j.created_at, j.updated_at, j.location,
       j.description, r.id, r.state, r.created_at, r.updated_at, r.nominal_start, r.nominal_end,
       r.started_at, r.ended_at
FROM {each ids uuid AS k}
JOIN jobs j ON j.id = k.value
LEFT JOIN jobs p ON p.id = j.parent_job_id
LEFT JOIN runs r ON r.id = (
    SELECT n.id
    FROM runs n
    WHERE n.job_id = k.value AND n.created_at <= :at
    ORDER BY n.created_at DESC, n.id DESC
    LIMIT 1
)
WHERE NOT (j.hidden = 1 AND j.hidden_at <= :at AND j.id <> :root)

-- name: lineage_datasets
-- Find the fields that a graph shows of these datasets, with the columns of their current
-- version, or of the newest if none is current.
SELECT d.id, d.namespace, d.name, d.type, d.physical_name, d.source_name, d.description,
       d.lifecycle, d.tags, d.field_tags, d.observed, d.hidden, d.created_at, d.updated_at,
       d.current_version_id, v.number, d.published_at, v.fields
FROM {each ids uuid AS k}
JOIN datasets d ON d.id = k.value
LEFT JOIN dataset_versions v ON v.id = COALESCE(d.current_version_id, d.latest_version_id)

-- name: lineage_datasets_as_of
-- Find the fields that a graph shows of these datasets, with the version that was current at a
-- time, or the newest that had been begun.
SELECT d.id, d.namespace, d.name, COALESCE(v.type, d.type),
       COALESCE(v.physical_name, d.physical_name), COALESCE(v.source_name, d.source_name),
       COALESCE(v.description, d.description), COALESCE(v.lifecycle, ''), d.tags, d.field_tags,
       d.observed, CASE WHEN d.hidden = 1 AND d.hidden_at <= :at THEN 1 ELSE 0 END, d.created_at,
       d.updated_at, c.id, c.number, c.published_at, v.fields
FROM {each ids uuid AS k}
JOIN datasets d ON d.id = k.value
LEFT JOIN dataset_versions c ON c.id = (
    SELECT w.id
    FROM dataset_versions w
    WHERE w.dataset_id = k.value AND w.published_at <= :at
    ORDER BY w.published_at DESC, w.id DESC
    LIMIT 1
)
LEFT JOIN dataset_versions v ON v.id = COALESCE(
    c.id,
    (SELECT w.id
     FROM dataset_versions w
     WHERE w.dataset_id = k.value AND w.created_at <= :at
     ORDER BY w.number DESC
     LIMIT 1)
)
