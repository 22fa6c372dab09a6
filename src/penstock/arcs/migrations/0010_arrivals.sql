-- Arrivals: objects that appear under a location become lots.

-- What was declared, as JSON, for the dataset that gets the lots. Objects before start are left
-- alone; every interval before open_from is closed. revision counts the decisions: one that was
-- made on an older revision is void.
CREATE TABLE arrivals (
    dataset_id  UUID PRIMARY KEY,
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    declaration TEXT NOT NULL,
    start       BIGINT NOT NULL,
    open_from   BIGINT NOT NULL,
    revision    BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX arrivals_by_name ON arrivals (namespace, name);

-- Which lot an object is in: one, by the key. mark is its ETag, or its time of change and size, when
-- the lot was made, refused the mark that was refused last (empty: none was).
CREATE TABLE arrived_objects (
    dataset_id UUID NOT NULL,
    uri        TEXT NOT NULL,
    lot        TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('assigned', 'late', 'refused')),
    size       BIGINT NOT NULL,
    mark       TEXT NOT NULL,
    refused    TEXT NOT NULL,
    modified   BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (dataset_id, uri),
    CHECK (state <> 'refused' OR refused <> '')
) WITHOUT ROWID;
CREATE INDEX arrived_objects_of_lot ON arrived_objects (dataset_id, lot) WHERE state <> 'refused';
CREATE INDEX arrived_objects_refused ON arrived_objects (dataset_id, uri) WHERE refused <> '';
