-- Which runs reported on the quality of which version: tests of it, or figures about it. The report
-- itself is a facet of run_datasets; few of its rows have one.
CREATE TABLE quality_reports (
    run_id     UUID NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('INPUT', 'OUTPUT')),
    dataset_id UUID NOT NULL,
    version_id UUID NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (run_id, role, dataset_id)
) WITHOUT ROWID;
CREATE INDEX quality_reports_by_version ON quality_reports (version_id, at, run_id);
INSERT INTO quality_reports (run_id, role, dataset_id, version_id, at)
SELECT d.run_id, d.role, d.dataset_id, d.version_id, COALESCE(r.ended_at, r.updated_at)
FROM run_datasets d JOIN runs r ON r.id = d.run_id
WHERE d.facets LIKE '%"dataQuality%' OR d.facets LIKE '%"greatExpectations_assertions"%';
