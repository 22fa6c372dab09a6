-- Lots: the pieces of datasets, their manifests, and the outbox of their events.
-- Times are microseconds since 1970 (UTC).

-- How a dataset is divided into lots: interval (empty: lot ids are free) and its label.
-- running_max: how many of its lots may be worked on at the same time; 0 is no limit.
CREATE TABLE lot_datasets (
    dataset_id  UUID PRIMARY KEY,
    interval    TEXT NOT NULL,
    label       TEXT NOT NULL,
    running_max BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);

-- The manifest of each version of a lot. The file itself is in the object store under its key.
CREATE TABLE lot_manifests (
    version_id UUID PRIMARY KEY,
    dataset_id UUID NOT NULL,
    lot        TEXT NOT NULL,
    state      TEXT NOT NULL {check state ManifestState},
    key        TEXT NOT NULL,
    uris       BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    digest     TEXT NOT NULL,
    attempt    TEXT NOT NULL,
    at         BIGINT NOT NULL
);
CREATE INDEX lot_manifests_of_lot ON lot_manifests (dataset_id, lot);
-- Few manifests are not complete: the search for gaps reads only those.
CREATE INDEX lot_manifests_odd ON lot_manifests (dataset_id, lot, version_id, state) WHERE state <> 'complete';
-- Fewer still are the manifests of lots that failed their checks.
CREATE INDEX lot_manifests_partial ON lot_manifests (dataset_id, lot, version_id) WHERE state = 'partial';

-- Datasets whose objects arrive by themselves, and the last scan of their location. error and
-- failed_at: why and since when the location cannot be read (empty: it can). untaken: how many
-- objects cannot be taken; example is one of them, and reason says why.
CREATE TABLE lot_landings (
    dataset_id UUID PRIMARY KEY,
    error      TEXT NOT NULL,
    failed_at  BIGINT NOT NULL,
    untaken    BIGINT NOT NULL,
    example    TEXT NOT NULL,
    reason     TEXT NOT NULL
);

-- The outbox of lots: their events in the order of commit.
CREATE TABLE lot_events (
    id         {identity},
    at         BIGINT NOT NULL,
    kind       TEXT NOT NULL,
    dataset_id UUID NOT NULL,
    lot        TEXT NOT NULL,
    state      TEXT NOT NULL,
    version_id UUID,
    job_id     UUID,
    run_id     UUID
);

-- The outbox of runs: ended runs of our own jobs, in the order of commit.
CREATE TABLE run_ends (
    id     {identity},
    at     BIGINT NOT NULL,
    run_id UUID NOT NULL
);

-- The last pruned event of each outbox: a reader that asks for an older one gets an error.
CREATE TABLE outbox_pruned (
    outbox TEXT PRIMARY KEY CHECK (outbox IN ('lots', 'runs')),
    upto   BIGINT NOT NULL
);

-- Subscribers to an outbox. cursor: the last delivered event. namespace, dataset: only events about
-- these; empty is all. owner and lease_until belong to the current deliverer. token only grows: a
-- deliverer with an older token is refused.
CREATE TABLE subscribers (
    name         TEXT PRIMARY KEY,
    kind         TEXT NOT NULL CHECK (kind IN ('webhook', 'openlineage')),
    url          TEXT NOT NULL,
    secret       TEXT,
    namespace    TEXT NOT NULL,
    dataset      TEXT NOT NULL,
    cursor       BIGINT NOT NULL CHECK (cursor >= 0),
    token        BIGINT NOT NULL,
    owner        TEXT NOT NULL,
    lease_until  BIGINT NOT NULL,
    failures     BIGINT NOT NULL,
    next_try_at  BIGINT NOT NULL,
    error        TEXT NOT NULL,
    failed_at    BIGINT,
    delivered_at BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL
);

-- Folders that are initialized as object stores. Each has a mark; a folder without its mark is not
-- the store but an empty mount point.
CREATE TABLE stores (
    url      TEXT PRIMARY KEY,
    begun_at BIGINT NOT NULL
);
