-- name: lineage_unfinished_as_of
-- Differs by necessity: a list of ids that depends on the job makes PostgreSQL read all runs, and
-- SQLite has no LATERAL. Otherwise the same.
SELECT r.job_id, d.role, d.dataset_id
FROM {each ids uuid AS k}
JOIN runs r ON r.job_id = k.value
JOIN run_datasets d ON d.run_id = r.id
WHERE r.state IN ('NEW', 'RUNNING') AND r.created_at <= :at
UNION ALL
SELECT r.job_id, d.role, d.dataset_id
FROM {each ids uuid AS k}
CROSS JOIN LATERAL (
    SELECT b.id, b.job_id, b.ended_at
    FROM runs b
    WHERE b.job_id = k.value AND b.created_at <= :at
    ORDER BY b.created_at DESC, b.id DESC
    LIMIT 1000
) r
JOIN run_datasets d ON d.run_id = r.id
WHERE r.ended_at > :at
