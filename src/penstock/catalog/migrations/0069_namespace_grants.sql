-- The runs of grantee may write the datasets of namespace as if these were their own.
CREATE TABLE namespace_grants (
    namespace  TEXT NOT NULL,
    grantee    TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, grantee)
) WITHOUT ROWID;

-- unconfirmed: a run reported this version with a key that may not write the dataset. It is never
-- published.
ALTER TABLE dataset_versions ADD COLUMN unconfirmed BIGINT NOT NULL DEFAULT 0;
