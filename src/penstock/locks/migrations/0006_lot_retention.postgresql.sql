-- What lots need of the catalog: the last run that worked on each lot, and the versions that lots
-- from outside have.
CREATE OR REPLACE VIEW kept_runs AS
SELECT r.id
FROM runs r
JOIN lot_work w ON w.job_id = r.job_id
    AND w.lot = CAST(r.facets AS json) -> 'penstock_lot' ->> 'lot' AND w.run_id = r.id
WHERE r.facets LIKE '%"penstock_lot"%';

CREATE OR REPLACE VIEW kept_versions AS
SELECT v.id
FROM dataset_versions v
JOIN lot_status s ON s.dataset_id = v.dataset_id
    AND s.lot = CAST(v.facets AS json) -> 'penstock_lot' ->> 'lot' AND s.role = 'OUTPUT'
    AND s.version_id = v.id
WHERE v.facets LIKE '%"penstock_lot"%';
