-- What arrives: batches, their jobs, and what became of them.
-- Times are microseconds since 1970 (UTC).

-- The next number of batches and of jobs.
CREATE TABLE ingest_counters (
    name  TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);

-- Processes that hold locks; a lock is as alive as its session.
CREATE TABLE ingest_sessions (
    id        TEXT PRIMARY KEY,
    owner     TEXT NOT NULL,
    alive_until BIGINT NOT NULL
);

-- submission and report are JSON. key_hash finds a submission that came twice.
CREATE TABLE ingest_batches (
    id            TEXT PRIMARY KEY,
    collection    TEXT NOT NULL,
    submission    TEXT NOT NULL,
    key_hash      TEXT,
    status        TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'reporting', 'update-reporting', 'completed', 'failed', 'held')),
    last_modified BIGINT NOT NULL,
    message       TEXT NOT NULL,
    jobs          BIGINT NOT NULL,
    report        TEXT,
    version       BIGINT NOT NULL,
    locked_by     TEXT NOT NULL
);
CREATE UNIQUE INDEX ingest_batches_by_key ON ingest_batches (key_hash) WHERE key_hash IS NOT NULL;
CREATE INDEX ingest_batches_by_status ON ingest_batches (status, id);
CREATE INDEX ingest_batches_by_collection ON ingest_batches (collection, id);
CREATE INDEX ingest_batches_locked ON ingest_batches (locked_by) WHERE locked_by <> '';

-- configuration, identifiers and history are JSON. A job is on one side of its batch.
CREATE TABLE ingest_jobs (
    id            TEXT PRIMARY KEY,
    batch_id      TEXT NOT NULL,
    configuration TEXT NOT NULL,
    identifiers   TEXT NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('pending', 'estimating', 'provisioning', 'downloading', 'processing', 'recording', 'notify', 'completed', 'failed', 'held')),
    side          TEXT NOT NULL CHECK (side IN ('batch-processing', 'batch-failed', 'batch-completed')),
    last_successful_status TEXT,
    last_modified BIGINT NOT NULL,
    retry_count   BIGINT NOT NULL,
    message       TEXT NOT NULL,
    history       TEXT NOT NULL,
    priority      BIGINT NOT NULL CHECK (priority BETWEEN 0 AND 99),
    space_needed  BIGINT NOT NULL CHECK (space_needed >= 0),
    version       BIGINT NOT NULL,
    locked_by     TEXT NOT NULL,
    CHECK (side = CASE status WHEN 'failed' THEN 'batch-failed' WHEN 'completed' THEN 'batch-completed' ELSE 'batch-processing' END)
);
CREATE INDEX ingest_jobs_waiting ON ingest_jobs (status, priority, id);
CREATE INDEX ingest_jobs_of_batch ON ingest_jobs (batch_id, id);
CREATE INDEX ingest_jobs_of_batch_by_status ON ingest_jobs (batch_id, status, id);
CREATE INDEX ingest_jobs_locked ON ingest_jobs (locked_by) WHERE locked_by <> '';

-- How many jobs of each batch are in each state; written with the jobs.
CREATE TABLE ingest_tallies (
    batch_id TEXT NOT NULL,
    status   TEXT NOT NULL,
    jobs     BIGINT NOT NULL CHECK (jobs >= 0),
    bytes    BIGINT NOT NULL,
    PRIMARY KEY (batch_id, status)
) WITHOUT ROWID;
CREATE INDEX ingest_tallies_by_status ON ingest_tallies (status) WHERE jobs > 0;

-- Collections, and the whole queue, that an administrator has stopped.
CREATE TABLE ingest_holds (
    kind  TEXT NOT NULL CHECK (kind IN ('queue', 'collection')),
    name  TEXT NOT NULL,
    who   TEXT NOT NULL,
    why   TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

-- What batches are submitted to; profile is JSON.
CREATE TABLE collections (
    name       TEXT PRIMARY KEY,
    profile    TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- ARKs that were minted, each once for its deposit, and who is writing a version of an object.
CREATE TABLE minted_arks (
    key      TEXT PRIMARY KEY,
    shoulder TEXT NOT NULL,
    number   BIGINT NOT NULL,
    ark      TEXT,
    at       BIGINT NOT NULL
);
CREATE UNIQUE INDEX minted_arks_by_ark ON minted_arks (ark) WHERE ark IS NOT NULL;

-- Which ARK an owner's own name for an object stands for.
CREATE TABLE local_ids (
    owner    TEXT NOT NULL,
    local_id TEXT NOT NULL,
    ark      TEXT NOT NULL,
    PRIMARY KEY (owner, local_id)
) WITHOUT ROWID;

-- The one deposit that may write a version of an object now.
CREATE TABLE ark_writers (
    ark    TEXT PRIMARY KEY,
    key    TEXT NOT NULL,
    job_id TEXT NOT NULL
);

-- Uploaded payloads, and the submission that has each; empty while there is none.
CREATE TABLE uploads (
    url    TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    at     BIGINT NOT NULL
);
CREATE INDEX uploads_unclaimed ON uploads (at) WHERE holder = '';

-- What is stored: one row for each version of an object. run_id is its run in the catalog.
CREATE TABLE stored_objects (
    ark        TEXT NOT NULL,
    version    BIGINT NOT NULL,
    key        TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    collection TEXT NOT NULL,
    batch_id   TEXT NOT NULL,
    job_id     TEXT NOT NULL,
    location   TEXT NOT NULL,
    digest     TEXT NOT NULL,
    files      BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    title      TEXT NOT NULL,
    run_id     UUID NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (ark, version)
) WITHOUT ROWID;
CREATE UNIQUE INDEX stored_objects_by_key ON stored_objects (key);
CREATE INDEX stored_objects_of_collection ON stored_objects (collection, at);
