-- Arcs: lots in, lots out.

-- What was declared; an arc is the catalog's job of the same id. declaration is JSON.
CREATE TABLE arcs (
    job_id      UUID PRIMARY KEY,
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    project     TEXT NOT NULL,
    declaration TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX arcs_by_name ON arcs (namespace, name);

-- The parts of lots that are split. run_id is the part's own run, attempt the claim that ran it.
-- inputs tells of which versions of the inputs a result was made: with others it is of no use.
CREATE TABLE arc_parts (
    job_id   UUID NOT NULL,
    lot      TEXT NOT NULL,
    part     TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('running', 'complete', 'empty', 'failed')),
    inputs   TEXT NOT NULL,
    attempt  UUID NOT NULL,
    run_id   UUID NOT NULL,
    outputs  TEXT NOT NULL,
    error    TEXT NOT NULL,
    at       BIGINT NOT NULL,
    PRIMARY KEY (job_id, lot, part)
) WITHOUT ROWID;

-- Attempts that failed, and the manifest of what each left behind; removed once that is cleaned.
CREATE TABLE arc_attempts (
    run_id UUID PRIMARY KEY,
    job_id UUID NOT NULL,
    lot    TEXT NOT NULL,
    state  TEXT NOT NULL CHECK (state IN ('partial', 'removed')),
    keys   TEXT NOT NULL,
    at     BIGINT NOT NULL
);
CREATE INDEX arc_attempts_of_lot ON arc_attempts (job_id, lot);
