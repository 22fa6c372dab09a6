-- Locks: which job may write which lot. A lock follows from status rows alone.
-- Times are microseconds since 1970 (UTC); flags are 0 or 1.

-- How a job processes lots, and the datasets that it reads and writes lot by lot (JSON lists of
-- dataset ids, in the order given). stated = 0: inferred from the events of the job.
CREATE TABLE lot_jobs (
    job_id           UUID PRIMARY KEY,
    inputs           TEXT NOT NULL,
    outputs          TEXT NOT NULL,
    lease_seconds    BIGINT NOT NULL CHECK (lease_seconds > 0),
    tries_max        BIGINT NOT NULL CHECK (tries_max > 0),
    back_off_seconds BIGINT NOT NULL CHECK (back_off_seconds >= 0),
    enforced         BIGINT NOT NULL CHECK (enforced IN (0, 1)),
    stated           BIGINT NOT NULL CHECK (stated IN (0, 1)),
    stale            TEXT NOT NULL CHECK (stale IN ('rerun', 'hold', 'ignore')),
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL,
    managed_by       TEXT                -- the engine that claims its lots; no other worker may
);

-- The same wiring by dataset: which jobs get work when a lot of the dataset turns READY.
CREATE TABLE lot_job_datasets (
    dataset_id UUID NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('INPUT', 'OUTPUT')),
    job_id     UUID NOT NULL,
    PRIMARY KEY (dataset_id, role, job_id)
) WITHOUT ROWID;

-- Holds on whole datasets and jobs. LINEAGE: the hold of a job follows the hold of a dataset
-- upstream, which is source_id.
CREATE TABLE lot_holds (
    id        UUID PRIMARY KEY,
    kind      TEXT NOT NULL CHECK (kind IN ('DATASET', 'JOB', 'LINEAGE')),
    who       TEXT NOT NULL,
    why       TEXT NOT NULL,
    since     BIGINT NOT NULL,
    source_id UUID
);

-- The truth about locks. An OUTPUT row of a lot that no job writes has the job 00000000-….
-- version_id: the READY version, or the version that an input consumed. held_from: the status that
-- a HOLD returns to.
CREATE TABLE lot_status (
    dataset_id UUID NOT NULL,
    lot        TEXT NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('INPUT', 'OUTPUT')),
    job_id     UUID NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'READY', 'DONE', 'ERROR', 'RESUBMIT', 'HOLD')),
    held_from  TEXT NOT NULL DEFAULT '',
    run_id     UUID,
    version_id UUID,
    since      BIGINT NOT NULL,
    PRIMARY KEY (dataset_id, lot, role, job_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX lot_status_one_writer ON lot_status (dataset_id, lot) WHERE role = 'OUTPUT';
CREATE INDEX lot_status_by_lot ON lot_status (lot COLLATE "C", dataset_id) WHERE role = 'OUTPUT';

-- The work of each job, lot by lot. It is derived from the status rows and written with them, so
-- that the cost of finding work does not grow with finished work. run_id, owner and the lease belong
-- to the claim; token only grows. lot_key: the order in which workers take lots, compared byte by
-- byte. stale_since: since when an input has a newer version than the one read. unmade = 1: done, but
-- an output wired later lacks the lot; few lots or none.
CREATE TABLE lot_work (
    job_id        UUID NOT NULL,
    lot           TEXT NOT NULL,
    lot_key       TEXT COLLATE "C" NOT NULL,
    rank          BIGINT NOT NULL,
    state         TEXT NOT NULL {check state WorkState},
    tries         BIGINT NOT NULL,
    token         BIGINT NOT NULL,
    run_id        UUID,
    owner         TEXT NOT NULL,
    lease_seconds BIGINT NOT NULL,
    lease_until   BIGINT NOT NULL,
    not_before    BIGINT NOT NULL,
    since         BIGINT NOT NULL,
    error         TEXT NOT NULL,
    stale_since   BIGINT NOT NULL,
    unmade        BIGINT NOT NULL DEFAULT 0 CHECK (unmade IN (0, 1)),
    PRIMARY KEY (job_id, lot),
    CHECK (state <> 'RUNNING' OR run_id IS NOT NULL)
) WITHOUT ROWID;
-- A lot on its way from READY to DONE is in few of these at a time. A claim is looked up by its run.
CREATE INDEX lot_work_ready ON lot_work (job_id, rank, lot_key) WHERE state = 'READY';
CREATE INDEX lot_work_stuck ON lot_work (job_id, state, rank, lot_key) WHERE state IN ('WAITING', 'RETRYABLE', 'HELD');
CREATE INDEX lot_work_leases ON lot_work (lease_until) WHERE state = 'RUNNING';
CREATE INDEX lot_work_later ON lot_work (not_before) WHERE state = 'RETRYABLE';
CREATE INDEX lot_work_stale ON lot_work (job_id, lot_key) WHERE stale_since > 0;
-- Lots that were tried, and are neither done nor running.
CREATE INDEX lot_work_failed ON lot_work (job_id, lot) WHERE tries > 0 AND state <> 'DONE' AND state <> 'RUNNING';
CREATE INDEX lot_work_unmade ON lot_work (job_id, lot) WHERE unmade = 1;
-- When live claims were taken or renewed last, by the clock of that server: finds a clock far ahead.
CREATE INDEX lot_work_renewed ON lot_work ((lease_until - lease_seconds * 1000000)) WHERE state = 'RUNNING';

-- The predicates of partial indexes, word for word: SQLite uses the index only then. The LIMIT and
-- the ORDER BY of running_work keep SQLite on the index of leases. Otherwise it would look for the
-- claims of one job among all its finished lots. No table reaches the limit.
CREATE VIEW stuck_work AS SELECT w.* FROM lot_work w WHERE w.state IN ('WAITING', 'RETRYABLE', 'HELD');
CREATE VIEW running_work AS SELECT w.* FROM lot_work w WHERE w.state = 'RUNNING' ORDER BY w.lease_until LIMIT 10000000;

-- Jobs with READY lots, and jobs with lots that wait or are stuck, each job once. The recursion jumps
-- from job to job along an index that holds only such lots. Idle jobs cost nothing, and a query for
-- the first few jobs reads no further.
CREATE VIEW ready_jobs AS
WITH RECURSIVE steps (job_id) AS (
    SELECT (SELECT w.job_id FROM lot_work w WHERE w.state = 'READY' ORDER BY w.job_id LIMIT 1)
    UNION ALL
    SELECT (SELECT w.job_id FROM lot_work w WHERE w.state = 'READY' AND w.job_id > last.job_id ORDER BY w.job_id LIMIT 1)
    FROM steps last WHERE last.job_id IS NOT NULL
)
SELECT f.job_id FROM steps f WHERE f.job_id IS NOT NULL;
CREATE VIEW stuck_jobs AS
WITH RECURSIVE steps (job_id) AS (
    SELECT (SELECT w.job_id FROM stuck_work w ORDER BY w.job_id LIMIT 1)
    UNION ALL
    SELECT (SELECT w.job_id FROM stuck_work w WHERE w.job_id > last.job_id ORDER BY w.job_id LIMIT 1)
    FROM steps last WHERE last.job_id IS NOT NULL
)
SELECT f.job_id FROM steps f WHERE f.job_id IS NOT NULL;

-- Why lots are held: a JSON list of the held datasets that contain the lot, or from which it was made.
CREATE TABLE lot_reasons (
    dataset_id UUID NOT NULL,
    lot        TEXT NOT NULL,
    why        TEXT NOT NULL,
    PRIMARY KEY (dataset_id, lot)
) WITHOUT ROWID;
CREATE INDEX lot_reasons_of_lot ON lot_reasons (lot);

-- Replays that are running or paused. They start their work in an order of their own.
CREATE TABLE turn_keepers (
    id        UUID PRIMARY KEY,
    name      TEXT NOT NULL,
    is_paused BIGINT NOT NULL CHECK (is_paused IN (0, 1))
);

-- Work that such replays have not started yet: no rule of the job starts it meanwhile. keepers: a
-- JSON list of their ids. kept_since: if the work became stale meanwhile, its stale_since before.
CREATE TABLE lot_turns (
    job_id     UUID NOT NULL,
    lot        TEXT NOT NULL,
    keepers    TEXT NOT NULL,
    kept_since BIGINT,
    PRIMARY KEY (job_id, lot)
) WITHOUT ROWID;

-- The results of checks on versions of lots.
CREATE TABLE lot_checks (
    version_id UUID NOT NULL,
    name       TEXT NOT NULL,
    field      TEXT NOT NULL,
    dataset_id UUID NOT NULL,
    lot        TEXT NOT NULL,
    success    BIGINT NOT NULL CHECK (success IN (0, 1)),
    detail     TEXT NOT NULL,
    run_id     UUID,
    at         BIGINT NOT NULL,
    PRIMARY KEY (version_id, name, field)
) WITHOUT ROWID;
CREATE INDEX lot_checks_by_time ON lot_checks (dataset_id, at);
CREATE INDEX lot_checks_failed ON lot_checks (dataset_id, at) WHERE success = 0;
-- In the order of display: without `at`, SQLite walks through all results of the dataset instead of
-- sorting a few.
CREATE INDEX lot_checks_of_lot ON lot_checks (dataset_id, lot, at);

-- Clock datasets in use. due_at: when the first interval ends that is not READY yet.
CREATE TABLE lot_clocks (
    dataset_id UUID PRIMARY KEY,
    interval   TEXT NOT NULL,
    due_at     BIGINT NOT NULL
);

-- The history of lots. Entries are pruned from the beginning, page by page.
CREATE TABLE lot_log (
    id         {identity},
    at         BIGINT NOT NULL,
    action     TEXT NOT NULL,
    lot        TEXT NOT NULL,
    job_id     UUID,
    dataset_id UUID,
    run_id     UUID,
    was        TEXT NOT NULL,
    became     TEXT NOT NULL,
    who        TEXT NOT NULL,
    why        TEXT NOT NULL
);
CREATE INDEX lot_log_of_job ON lot_log (job_id, id) WHERE job_id IS NOT NULL;
CREATE INDEX lot_log_of_work ON lot_log (job_id, lot) WHERE job_id IS NOT NULL;
CREATE INDEX lot_log_of_lot ON lot_log (dataset_id, lot) WHERE dataset_id IS NOT NULL;
