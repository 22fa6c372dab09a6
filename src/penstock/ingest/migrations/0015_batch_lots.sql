-- Reported batches as lots of their collection's dataset: the manifest of each, by the last report
-- that said something new. due_at: when the interval's lot that it is part of is published; 0 once
-- it is.
CREATE TABLE batch_lots (
    batch_id   TEXT PRIMARY KEY,
    collection TEXT NOT NULL,
    submitter  TEXT NOT NULL,
    dataset_id UUID NOT NULL,
    lot        TEXT NOT NULL,
    report     BIGINT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('complete', 'partial', 'empty')),
    key        TEXT NOT NULL,
    uris       BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    digest     TEXT NOT NULL,
    attempt    TEXT NOT NULL,
    due_at     BIGINT NOT NULL,
    at         BIGINT NOT NULL
);
CREATE INDEX batch_lots_of_lot ON batch_lots (dataset_id, lot);
CREATE INDEX batch_lots_due ON batch_lots (due_at) WHERE due_at > 0;
