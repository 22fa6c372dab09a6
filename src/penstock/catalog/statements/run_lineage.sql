-- name: run_inputs
-- Find the versions that these runs read, and the runs that wrote them.
SELECT i.run_id, d.namespace, d.name, i.version_id, v.run_id
FROM {each ids uuid AS k}
JOIN run_datasets i ON i.run_id = k.value AND i.role = 'INPUT'
JOIN datasets d ON d.id = i.dataset_id
LEFT JOIN dataset_versions v ON v.id = i.version_id

-- name: runs_with_jobs
-- Find these runs, each with its job.
SELECT r.id, r.state, r.started_at, r.ended_at, r.job_version_id, j.namespace, j.name
FROM {each ids uuid AS k}
JOIN runs r ON r.id = k.value
JOIN jobs j ON j.id = r.job_id
