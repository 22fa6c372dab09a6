-- Arcs, arrivals and backfills.
-- Times are microseconds since 1970 (UTC).

-- An arc is the catalog's job with the same id; declaration is JSON.
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

-- The parts of split lots. run_id: the run of the part itself; attempt: the claim that ran it.
-- inputs: the versions of the inputs that the result was made from. With other versions the result
-- is of no use.
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

-- Failed attempts and the manifests of the files that each left behind; deleted after cleaning.
CREATE TABLE arc_attempts (
    run_id UUID PRIMARY KEY,
    job_id UUID NOT NULL,
    lot    TEXT NOT NULL,
    state  TEXT NOT NULL CHECK (state IN ('partial', 'removed')),
    keys   TEXT NOT NULL,
    at     BIGINT NOT NULL
);
CREATE INDEX arc_attempts_of_lot ON arc_attempts (job_id, lot);

-- Lots whose state keys in the object store may lag behind the database: of arcs (owner_id is the
-- job) from the claim on, of arrivals (owner_id is the dataset) from publication on. The writer of
-- the keys deletes the row. If its attempt has ended, an engine repairs the keys.
CREATE TABLE unsettled_keys (
    owner_id UUID NOT NULL,
    lot      TEXT NOT NULL,
    attempt  UUID NOT NULL,
    PRIMARY KEY (owner_id, lot)
) WITHOUT ROWID;

-- Arrivals: objects that appear under a location become lots of the dataset. declaration is JSON.
-- Objects before start are ignored; every interval before open_from is closed. revision counts the
-- decisions: a decision based on an older revision is void.
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

-- The lot of each object: the key assigns an object to one lot. mark: its ETag, or its modification
-- time and size, when the lot was made. refused: the mark that was refused last (empty: none).
-- digest: of the content at that time, as in manifests; empty if the object was not read.
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
    digest     TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (dataset_id, uri),
    CHECK (state <> 'refused' OR refused <> '')
) WITHOUT ROWID;
CREATE INDEX arrived_objects_of_lot ON arrived_objects (dataset_id, lot) WHERE state <> 'refused';
CREATE INDEX arrived_objects_refused ON arrived_objects (dataset_id, uri) WHERE refused <> '';

-- Backfills: repairs of the lots of an arc over a range of time, a few at a time. spec (JSON): the
-- request. looked_to: the time up to which the range was examined, upwards, or downwards from its
-- end. counts (JSON): of the examined lots that needed nothing, and of those that ended. ran: the
-- time spent running before `since`.
CREATE TABLE backfills (
    id         UUID PRIMARY KEY,
    job_id     UUID NOT NULL,
    state      TEXT NOT NULL {check state BackfillState},
    spec       TEXT NOT NULL,
    looked_to  BIGINT NOT NULL,
    counts     TEXT NOT NULL,
    who        TEXT NOT NULL,
    why        TEXT NOT NULL,
    ran        BIGINT NOT NULL,
    since      BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX backfills_running ON backfills (created_at) WHERE state = 'running';
CREATE INDEX backfills_by_age ON backfills (created_at);

-- The lots that a backfill has started, and their results.
CREATE TABLE backfill_lots (
    backfill_id UUID NOT NULL,
    lot         TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('going', 'done', 'failed', 'waiting')),
    action      TEXT NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (backfill_id, lot)
) WITHOUT ROWID;
CREATE INDEX backfill_lots_going ON backfill_lots (backfill_id) WHERE state = 'going';
CREATE INDEX backfill_lots_failed ON backfill_lots (backfill_id) WHERE state = 'failed';

-- Datasets that have lots, or are wired, held or watched for lots.
DROP VIEW kept_datasets;
CREATE VIEW kept_datasets AS
SELECT s.dataset_id AS id FROM lot_status s
UNION ALL SELECT w.dataset_id FROM lot_job_datasets w
UNION ALL SELECT l.dataset_id FROM lot_datasets l
UNION ALL SELECT m.dataset_id FROM lot_manifests m
UNION ALL SELECT c.dataset_id FROM lot_clocks c
UNION ALL SELECT h.id FROM lot_holds h
UNION ALL SELECT a.dataset_id FROM arrivals a;
