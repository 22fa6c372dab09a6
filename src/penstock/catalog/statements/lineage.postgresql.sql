-- name: walk_by_key
-- Differs by necessity: only PostgreSQL has settings for plans. A walk repeats a few statements,
-- and planning one takes longer than running it. Nested loops over indexes are right at every
-- size. The setting lasts for the transaction.
SELECT set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true)

-- name: lineage_unfinished_as_of
-- Differs by necessity: a list of ids that depends on the job makes PostgreSQL read all runs,
-- and SQLite has no LATERAL. Otherwise the same.
SELECT r.job_id, d.role, d.dataset_id
FROM {each ids uuid AS k}
JOIN runs r ON r.job_id = k.value
JOIN run_datasets d ON d.run_id = r.id
WHERE r.ended_at IS NULL AND r.created_at <= :at
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
