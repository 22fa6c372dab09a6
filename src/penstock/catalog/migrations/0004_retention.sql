-- Until when a run or a version is needed; what was needed last before a time may be pruned then.
-- 9223372036854775807 is for ever.

-- Runs and declared versions that another capability needs for ever; it says which by other views
-- in the place of these.
CREATE VIEW kept_runs AS SELECT r.id FROM runs r WHERE 1 = 0;
CREATE VIEW kept_versions AS SELECT v.id FROM dataset_versions v WHERE 1 = 0;

-- For its own sake a run is needed until it ended; for ever while it goes on, is its job's newest,
-- made the current or the latest version of a dataset, or is kept for another reason.
CREATE VIEW run_merits AS
SELECT r.id,
       CASE WHEN r.ended_at IS NULL
              OR EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.job_id AND j.latest_run_id = r.id)
              OR EXISTS (SELECT 1 FROM run_datasets w JOIN datasets d ON d.id = w.dataset_id
                         WHERE w.run_id = r.id AND w.role = 'OUTPUT'
                           AND (d.current_version_id = w.version_id
                                OR d.latest_version_id = w.version_id))
              OR EXISTS (SELECT 1 FROM kept_runs k WHERE k.id = r.id)
            THEN 9223372036854775807
            ELSE r.ended_at
       END AS until
FROM runs r;

-- A run is needed as long as itself or any reader of what it made has merit. A reader that is
-- needed only by its own readers does not count: else a job that reads what it wrote last time
-- would need all its runs for ever.
CREATE VIEW run_needs AS
SELECT r.id, r.job_id, r.job_version_id, r.ended_at,
       (SELECT MAX(n.until)
        FROM (SELECT m.until FROM run_merits m WHERE m.id = r.id
              UNION ALL
              SELECT m.until
              FROM run_datasets w
              JOIN run_datasets u ON u.version_id = w.version_id AND u.role = 'INPUT'
              JOIN run_merits m ON m.id = u.run_id
              WHERE w.run_id = r.id AND w.role = 'OUTPUT') n) AS needed_until
FROM runs r;

-- A version that a run made is needed as long as the run. One that was declared is needed while it
-- is the current or the latest, or a reader of it has merit; an implied one, for ever.
CREATE VIEW version_needs AS
SELECT v.id, v.dataset_id, v.origin, v.column_set_id, v.created_at,
       CASE WHEN v.origin = 'RUN'
            THEN COALESCE((SELECT n.needed_until FROM run_needs n WHERE n.id = v.run_id),
                          9223372036854775807)
            WHEN v.origin = 'IMPLIED'
              OR EXISTS (SELECT 1 FROM datasets d WHERE d.id = v.dataset_id
                           AND (d.current_version_id = v.id OR d.latest_version_id = v.id))
              OR EXISTS (SELECT 1 FROM kept_versions k WHERE k.id = v.id)
            THEN 9223372036854775807
            ELSE (SELECT MAX(n.until)
                  FROM (SELECT v.created_at AS until
                        UNION ALL
                        SELECT m.until
                        FROM run_datasets u JOIN run_merits m ON m.id = u.run_id
                        WHERE u.version_id = v.id AND u.role = 'INPUT') n)
       END AS needed_until
FROM dataset_versions v;
