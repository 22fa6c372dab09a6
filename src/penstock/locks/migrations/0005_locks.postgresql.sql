ALTER TABLE lot_work SET (fillfactor = 80);
-- A status row is written when its lot is claimed and again when the claim ends, mostly for many
-- lots at once. With room for both on one page, the second write touches no index.
ALTER TABLE lot_status SET (fillfactor = 50);

-- The runs and versions that lots need: the last run that worked on each lot, and every version that
-- a lot has or has consumed, with its run. The job may have been rewired since, so that another run
-- worked on the lot last.
-- The facet that names lots is written by Penstock and found by its text. Reading all facets as JSON
-- would fail at the first escape, in any facet, that PostgreSQL cannot store.
CREATE FUNCTION lots_in(facets text) RETURNS SETOF text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT replace(t.parts[1], '\"', '"')
    FROM regexp_matches(facets, '"penstock_lot":(\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})', 'g') f(parts),
         regexp_matches(f.parts[1], '"((?:[^"\\]|\\.)*)"', 'g') t(parts)
$$;

CREATE OR REPLACE VIEW kept_runs AS
SELECT r.id
FROM runs r
CROSS JOIN LATERAL lots_in(r.facets) AS facet(lot)
JOIN lot_work w ON w.job_id = r.job_id AND w.lot = facet.lot AND w.run_id = r.id
WHERE r.facets LIKE '%"penstock_lot"%'
UNION ALL
SELECT r.id
FROM runs r
CROSS JOIN LATERAL lots_in(r.facets) AS facet(lot)
JOIN run_datasets o ON o.run_id = r.id AND o.role = 'OUTPUT'
JOIN lot_status s ON s.dataset_id = o.dataset_id AND s.lot = facet.lot AND s.version_id = o.version_id
WHERE r.facets LIKE '%"penstock_lot"%';

CREATE OR REPLACE VIEW kept_versions AS
SELECT v.id
FROM dataset_versions v
CROSS JOIN LATERAL lots_in(v.facets) AS facet(lot)
JOIN lot_status s ON s.dataset_id = v.dataset_id AND s.lot = facet.lot AND s.version_id = v.id
WHERE v.facets LIKE '%"penstock_lot"%';
