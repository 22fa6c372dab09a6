-- Ingest: batches, their jobs, and the objects that they store.
-- Times are microseconds since 1970 (UTC).

-- The last number given to a batch and to a job.
CREATE TABLE ingest_counters (
    name  TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO ingest_counters (name, value) VALUES ('batches', 0), ('jobs', 0);

-- Numbers that a queue outside the database may give to batches and jobs: no other queue gives them.
-- given: the last number that the queue is known to have given.
CREATE TABLE ingest_ranges (
    queue        TEXT NOT NULL,
    name         TEXT NOT NULL,
    first_number BIGINT NOT NULL,
    last_number  BIGINT NOT NULL CHECK (last_number >= first_number),
    given        BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, name)
) WITHOUT ROWID;

-- Processes that hold locks: a lock is valid while its session is alive. lasts: for how long a
-- heartbeat keeps the session alive.
CREATE TABLE ingest_sessions (
    id          TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    alive_until BIGINT NOT NULL,
    lasts       BIGINT NOT NULL DEFAULT 0
);

-- submission and report are JSON. key_hash finds a repeated submission.
CREATE TABLE ingest_batches (
    id            TEXT PRIMARY KEY,
    collection    TEXT NOT NULL,
    submission    TEXT NOT NULL,
    key_hash      TEXT,
    status        TEXT NOT NULL {check status BatchState except deleted},
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
-- Finds the few open or held batches of a collection among all that it completed.
CREATE INDEX ingest_batches_of_collection_by_status ON ingest_batches (collection, status, id);

-- configuration, identifiers and history are JSON. A job is on one side of its batch.
-- can_begin_again: the job failed before any stage succeeded, but not because of its payload.
-- keeps_priority: a person set the priority, and no stage changes it.
CREATE TABLE ingest_jobs (
    id                     TEXT PRIMARY KEY,
    batch_id               TEXT NOT NULL,
    configuration          TEXT NOT NULL,
    identifiers            TEXT NOT NULL,
    status                 TEXT NOT NULL {check status IngestState except deleted},
    side                   TEXT NOT NULL CHECK (side IN ('batch-processing', 'batch-failed', 'batch-completed')),
    last_successful_status TEXT,
    last_modified          BIGINT NOT NULL,
    retry_count            BIGINT NOT NULL,
    message                TEXT NOT NULL,
    history                TEXT NOT NULL,
    can_begin_again        BIGINT NOT NULL DEFAULT 0 CHECK (can_begin_again IN (0, 1)),
    keeps_priority         BIGINT NOT NULL DEFAULT 0 CHECK (keeps_priority IN (0, 1)),
    priority               BIGINT NOT NULL CHECK (priority BETWEEN 0 AND 99),
    space_needed           BIGINT NOT NULL CHECK (space_needed >= 0),
    version                BIGINT NOT NULL,
    locked_by              TEXT NOT NULL,
    CHECK (side = CASE status WHEN 'failed' THEN 'batch-failed' WHEN 'completed' THEN 'batch-completed' ELSE 'batch-processing' END)
);
CREATE INDEX ingest_jobs_waiting ON ingest_jobs (status, priority, id);
CREATE INDEX ingest_jobs_of_batch ON ingest_jobs (batch_id, id);
CREATE INDEX ingest_jobs_of_batch_by_status ON ingest_jobs (batch_id, status, id);
CREATE INDEX ingest_jobs_locked ON ingest_jobs (locked_by) WHERE locked_by <> '';
-- Finds the latest failures among all.
CREATE INDEX ingest_jobs_failed ON ingest_jobs (last_modified, id) WHERE status = 'failed';

-- How many jobs of each batch are in each state; written with the jobs. The rows of the batch ''
-- hold the sums over all batches.
CREATE TABLE ingest_tallies (
    batch_id TEXT NOT NULL,
    status   TEXT NOT NULL,
    jobs     BIGINT NOT NULL CHECK (jobs >= 0),
    bytes    BIGINT NOT NULL,
    PRIMARY KEY (batch_id, status)
) WITHOUT ROWID;

-- Holds on collections and on the whole queue.
CREATE TABLE ingest_holds (
    kind  TEXT NOT NULL CHECK (kind IN ('queue', 'collection')),
    name  TEXT NOT NULL,
    who   TEXT NOT NULL,
    why   TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

-- Undelivered mail to depositors: each letter is sent again from next_at on. recipients: a JSON list
-- of the addresses without delivery. trouble: why, in the words shown with the batch.
CREATE TABLE ingest_letters (
    message_id TEXT PRIMARY KEY,
    batch_id   TEXT NOT NULL,
    recipients TEXT NOT NULL,
    subject    TEXT NOT NULL,
    body       TEXT NOT NULL,
    tries      BIGINT NOT NULL,
    since      BIGINT NOT NULL,
    next_at    BIGINT NOT NULL,
    trouble    TEXT NOT NULL
);
CREATE INDEX ingest_letters_due ON ingest_letters (next_at);

-- The progress of long downloads. total: the expected size, 0 if it is unknown.
CREATE TABLE ingest_progress (
    job_id TEXT PRIMARY KEY,
    bytes  BIGINT NOT NULL,
    total  BIGINT NOT NULL,
    at     BIGINT NOT NULL
);
CREATE INDEX ingest_progress_by_time ON ingest_progress (at);

-- The collections that batches are submitted to; profile is JSON.
CREATE TABLE collections (
    name       TEXT PRIMARY KEY,
    profile    TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- Reported batches as lots of the dataset of their collection: the manifest by the last report that
-- changed it. due_at: when the lot of the interval is published; 0 once it is.
CREATE TABLE batch_lots (
    batch_id   TEXT PRIMARY KEY,
    collection TEXT NOT NULL,
    submitter  TEXT NOT NULL,
    dataset_id UUID NOT NULL,
    lot        TEXT NOT NULL,
    report     BIGINT NOT NULL,
    state      TEXT NOT NULL {check state ManifestState except removed},
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

-- Uploaded payloads. holder: the submission that uses the payload; empty while there is none.
-- batch_id: the batch that it became; empty until the batch is known to exist.
CREATE TABLE uploads (
    url      TEXT PRIMARY KEY,
    holder   TEXT NOT NULL,
    at       BIGINT NOT NULL,
    batch_id TEXT NOT NULL DEFAULT ''
);
CREATE INDEX uploads_unspent ON uploads (at) WHERE batch_id = '';

-- Minted ARKs, one for each deposit (key).
CREATE TABLE minted_arks (
    key      TEXT PRIMARY KEY,
    shoulder TEXT NOT NULL,
    number   BIGINT NOT NULL,
    ark      TEXT,
    at       BIGINT NOT NULL
);
CREATE UNIQUE INDEX minted_arks_by_ark ON minted_arks (ark) WHERE ark IS NOT NULL;

-- ARKs in use, whoever minted them, and the namespace that owns each. storage: the base of the stored
-- object; NULL until it is stored, empty for the server's own store.
CREATE TABLE arks (
    ark       TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    storage   TEXT
);

-- The ARK for an owner's own name of an object, in each namespace.
CREATE TABLE local_ids (
    namespace TEXT NOT NULL,
    owner     TEXT NOT NULL,
    local_id  TEXT NOT NULL,
    ark       TEXT NOT NULL,
    PRIMARY KEY (namespace, owner, local_id)
) WITHOUT ROWID;

-- The one deposit that may write a version of an object now.
CREATE TABLE ark_writers (
    ark    TEXT PRIMARY KEY,
    key    TEXT NOT NULL,
    job_id TEXT NOT NULL
);

-- Stored objects: one row for each version. run_id: its run in the catalog.
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

-- The texts that find deposits: in lower case, cut at 200 characters, and compared byte by byte, so
-- that a range of keys is all that begin alike. reference: the ARK, or the batch for a depositor.
-- name: the text to show.
CREATE TABLE search_keys (
    namespace  TEXT NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('ark', 'local-id', 'file', 'digest', 'depositor')),
    name       TEXT NOT NULL,
    collection TEXT NOT NULL,
    reference  TEXT NOT NULL,
    version    BIGINT NOT NULL
);
CREATE UNIQUE INDEX search_keys_of_depositors ON search_keys (reference, key) WHERE kind = 'depositor';
CREATE INDEX search_keys_by_key ON search_keys (namespace, key);
