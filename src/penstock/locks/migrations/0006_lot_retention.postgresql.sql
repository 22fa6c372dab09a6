-- What lots need of the catalog: the last run that worked on each lot, and the versions that lots
-- from outside have. The facet that names lots is written by us, and found by its text: reading all
-- facets as JSON would fail at the first escape, in anybody's facet, that PostgreSQL cannot store.
CREATE FUNCTION lots_in(facets text) RETURNS SETOF text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT replace(t.found[1], '\"', '"')
    FROM regexp_matches(facets, '"penstock_lot":(\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})', 'g') f(found),
         regexp_matches(f.found[1], '"((?:[^"\\]|\\.)*)"', 'g') t(found)
$$;

CREATE OR REPLACE VIEW kept_runs AS
SELECT r.id
FROM runs r
CROSS JOIN LATERAL lots_in(r.facets) AS named(lot)
JOIN lot_work w ON w.job_id = r.job_id AND w.lot = named.lot AND w.run_id = r.id
WHERE r.facets LIKE '%"penstock_lot"%';

CREATE OR REPLACE VIEW kept_versions AS
SELECT v.id
FROM dataset_versions v
CROSS JOIN LATERAL lots_in(v.facets) AS named(lot)
JOIN lot_status s ON s.dataset_id = v.dataset_id AND s.lot = named.lot AND s.role = 'OUTPUT'
    AND s.version_id = v.id
WHERE v.facets LIKE '%"penstock_lot"%';
