-- Lots whose keys in the object store may not follow the database yet: of arcs (owner_id is the
-- job) since they were claimed, of arrivals (owner_id is the dataset) since they were published.
-- Who writes the keys takes the row away. A row whose attempt has ended is repaired by an engine.
CREATE TABLE unsettled_keys (
    owner_id UUID NOT NULL,
    lot      TEXT NOT NULL,
    attempt  UUID NOT NULL,
    PRIMARY KEY (owner_id, lot)
) WITHOUT ROWID;
