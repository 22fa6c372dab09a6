-- A run is kept, too, as long as a lot has, or was consumed in, what it made: its job may have been
-- wired otherwise since, and its last run on the lot be another. So are declared versions.
DROP VIEW kept_runs;
CREATE VIEW kept_runs AS
SELECT r.id
FROM runs r
JOIN json_tree(r.facets, '$.penstock_lot') named ON named.type = 'text'
JOIN lot_work w ON w.job_id = r.job_id AND w.lot = named.atom AND w.run_id = r.id
WHERE r.facets LIKE '%"penstock_lot"%'
UNION ALL
SELECT r.id
FROM runs r
JOIN json_tree(r.facets, '$.penstock_lot') named ON named.type = 'text'
JOIN run_datasets o ON o.run_id = r.id AND o.role = 'OUTPUT'
JOIN lot_status s ON s.dataset_id = o.dataset_id AND s.lot = named.atom AND s.version_id = o.version_id
WHERE r.facets LIKE '%"penstock_lot"%';

DROP VIEW kept_versions;
CREATE VIEW kept_versions AS
SELECT v.id
FROM dataset_versions v
JOIN json_tree(v.facets, '$.penstock_lot') named ON named.type = 'text'
JOIN lot_status s ON s.dataset_id = v.dataset_id AND s.lot = named.atom AND s.version_id = v.id
WHERE v.facets LIKE '%"penstock_lot"%';
