-- The runs and versions that lots need: the last run that worked on each lot, and every version that
-- a lot has or has consumed, with its run. The job may have been rewired since, so that another run
-- worked on the lot last.
DROP VIEW kept_runs;
CREATE VIEW kept_runs AS
SELECT r.id
FROM runs r
JOIN json_tree(r.facets, '$.penstock_lot') facet ON facet.type = 'text'
JOIN lot_work w ON w.job_id = r.job_id AND w.lot = facet.atom AND w.run_id = r.id
WHERE r.facets LIKE '%"penstock_lot"%'
UNION ALL
SELECT r.id
FROM runs r
JOIN json_tree(r.facets, '$.penstock_lot') facet ON facet.type = 'text'
JOIN run_datasets o ON o.run_id = r.id AND o.role = 'OUTPUT'
JOIN lot_status s ON s.dataset_id = o.dataset_id AND s.lot = facet.atom AND s.version_id = o.version_id
WHERE r.facets LIKE '%"penstock_lot"%';

DROP VIEW kept_versions;
CREATE VIEW kept_versions AS
SELECT v.id
FROM dataset_versions v
JOIN json_tree(v.facets, '$.penstock_lot') facet ON facet.type = 'text'
JOIN lot_status s ON s.dataset_id = v.dataset_id AND s.lot = facet.atom AND s.version_id = v.id
WHERE v.facets LIKE '%"penstock_lot"%';

-- A hundred jobs with ten thousand lots each, nearly all of them done.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('lot_work', 'lot_work', '1000000 10000 1'),
    ('lot_work', 'lot_work_ready', '1000 100 100 1'),
    ('lot_work', 'lot_work_stuck', '1000 100 50 50 1'),
    ('lot_work', 'lot_work_leases', '100 1'),
    ('lot_work', 'lot_work_later', '100 1'),
    ('lot_work', 'lot_work_stale', '100 10 1'),
    ('lot_work', 'lot_work_failed', '500 50 1'),
    ('lot_work', 'lot_work_unmade', '500 50 1'),
    ('lot_work', 'lot_work_renewed', '100 1'),
    ('lot_status', 'lot_status', '2000000 20000 2 1 1'),
    ('lot_status', 'lot_status_one_writer', '1000000 10000 1'),
    ('lot_status', 'lot_status_by_lot', '1000000 100 1'),
    ('lot_log', 'lot_log_of_job', '3000000 30000 1'),
    ('lot_log', 'lot_log_of_work', '3000000 30000 3'),
    ('lot_log', 'lot_log_of_lot', '1000000 10000 1'),
    ('lot_reasons', 'lot_reasons', '1000 20 1'),
    ('lot_reasons', 'lot_reasons_of_lot', '1000 2');
