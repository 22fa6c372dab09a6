-- Who may touch which lot. A lot is one chunk of a dataset; locks follow from status rows alone.
-- Times are microseconds since 1970 (UTC); flags are 0 or 1.

-- How a job's lots are worked on, and which datasets it reads and writes lot by lot (JSON lists of
-- dataset ids, in the order they were given). stated = 0: nobody said so, its events did.
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
    updated_at       BIGINT NOT NULL
);

-- The same by dataset: who looks for work when a lot of it turns READY.
CREATE TABLE lot_job_datasets (
    dataset_id UUID NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('INPUT', 'OUTPUT')),
    job_id     UUID NOT NULL,
    PRIMARY KEY (dataset_id, role, job_id)
) WITHOUT ROWID;

-- Datasets and jobs that an administrator has stopped, whole.
CREATE TABLE lot_holds (
    id    UUID PRIMARY KEY,
    kind  TEXT NOT NULL CHECK (kind IN ('DATASET', 'JOB', 'LINEAGE')),
    who   TEXT NOT NULL,
    why   TEXT NOT NULL,
    since BIGINT NOT NULL
);

-- The truth about locks. An OUTPUT row of a lot that no job made has the job 00000000-….
-- version_id: what is READY, or what an input consumed. held_from: what a HOLD goes back to.
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

-- What a job has to do, lot by lot, kept up to date with the status rows so that finding work costs
-- the same however much was done before. token only grows; run_id, owner and lease are of the claim.
CREATE TABLE lot_work (
    job_id        UUID NOT NULL,
    lot           TEXT NOT NULL,
    lot_key       TEXT NOT NULL,
    rank          BIGINT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('WAITING', 'READY', 'LATER', 'RUNNING', 'DONE', 'HELD')),
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
    PRIMARY KEY (job_id, lot),
    CHECK (state <> 'RUNNING' OR run_id IS NOT NULL)
) WITHOUT ROWID;
-- A lot on its way from READY to DONE is in few of these at a time; a claim is found by its run.
CREATE INDEX lot_work_ready ON lot_work (job_id, rank, lot_key) WHERE state = 'READY';
CREATE INDEX lot_work_stuck ON lot_work (job_id, state, rank, lot_key) WHERE state IN ('WAITING', 'LATER', 'HELD');
CREATE INDEX lot_work_leases ON lot_work (lease_until) WHERE state = 'RUNNING';
CREATE INDEX lot_work_later ON lot_work (not_before) WHERE state = 'LATER';
CREATE INDEX lot_work_stale ON lot_work (job_id, lot_key) WHERE stale_since > 0;

-- Why lots are held: a JSON list of datasets of which the lot, or what it was made from, is held.
CREATE TABLE lot_reasons (
    dataset_id UUID NOT NULL,
    lot        TEXT NOT NULL,
    why        TEXT NOT NULL,
    PRIMARY KEY (dataset_id, lot)
) WITHOUT ROWID;
CREATE INDEX lot_reasons_of_lot ON lot_reasons (lot);

-- What checks said about versions of lots.
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
CREATE INDEX lot_checks_of_lot ON lot_checks (dataset_id, lot);
CREATE INDEX lot_checks_by_time ON lot_checks (dataset_id, at);
CREATE INDEX lot_checks_failed ON lot_checks (dataset_id, at) WHERE success = 0;

-- Clock datasets in use, and when the first interval of each that is not READY yet ends.
CREATE TABLE lot_clocks (
    dataset_id UUID PRIMARY KEY,
    interval   TEXT NOT NULL,
    due_at BIGINT NOT NULL
);
