-- What lots need of the catalog: the last run that worked on each lot, and the versions that lots
-- from outside have.
DROP VIEW kept_runs;
CREATE VIEW kept_runs AS
SELECT r.id
FROM runs r
JOIN json_tree(r.facets, '$.penstock_lot') named ON named.type = 'text'
JOIN lot_work w ON w.job_id = r.job_id AND w.lot = named.atom AND w.run_id = r.id
WHERE r.facets LIKE '%"penstock_lot"%';

DROP VIEW kept_versions;
CREATE VIEW kept_versions AS
SELECT v.id
FROM dataset_versions v
JOIN json_tree(v.facets, '$.penstock_lot') named ON named.type = 'text'
JOIN lot_status s ON s.dataset_id = v.dataset_id AND s.lot = named.atom AND s.role = 'OUTPUT'
    AND s.version_id = v.id
WHERE v.facets LIKE '%"penstock_lot"%';
