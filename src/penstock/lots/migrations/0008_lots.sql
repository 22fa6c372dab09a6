-- What datasets consist of, lot by lot.

-- How the lots of a dataset are cut: its interval (empty: ids are free), and the label of that.
-- running_max: how many of its lots may be worked on at once; 0 is no limit.
CREATE TABLE lot_datasets (
    dataset_id  UUID PRIMARY KEY,
    interval    TEXT NOT NULL,
    label       TEXT NOT NULL,
    running_max BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);

-- The manifest of each version that a lot has had. The file is in the object store under its key.
CREATE TABLE lot_manifests (
    version_id UUID PRIMARY KEY,
    dataset_id UUID NOT NULL,
    lot        TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('complete', 'partial', 'empty', 'removed')),
    key        TEXT NOT NULL,
    uris       BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    digest     TEXT NOT NULL,
    attempt    TEXT NOT NULL,
    at         BIGINT NOT NULL
);
CREATE INDEX lot_manifests_of_lot ON lot_manifests (dataset_id, lot);
