-- What a version inherits from the one published before it. Versions that inherit the same share a
-- set, and a set never changes.
CREATE TABLE facet_sets (
    id         UUID PRIMARY KEY,
    dataset_id UUID NOT NULL,
    facets     TEXT NOT NULL,
    stamps     TEXT NOT NULL
);
ALTER TABLE dataset_versions ADD COLUMN inherited_set_id UUID;
CREATE INDEX dataset_versions_by_inherited_set ON dataset_versions (inherited_set_id)
    WHERE inherited_set_id IS NOT NULL;
-- Versions that were declared with fields and without facets keep their fields.
UPDATE dataset_versions SET stamps = '{"schema":0}' WHERE origin = 'DECLARED' AND stamps = '{}';
