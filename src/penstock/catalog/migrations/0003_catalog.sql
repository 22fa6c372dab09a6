-- The catalog: who made what from what.
-- Times are microseconds since 1970 (UTC); JSON is text; booleans are 0 or 1.
-- Ids of datasets and jobs are digests of their names, so no row waits for another's key.
-- WITHOUT ROWID is for SQLite, which then keeps a narrow table in the order of its key.

CREATE TABLE namespaces (
    name        TEXT PRIMARY KEY,
    owner_name  TEXT NOT NULL,
    description TEXT,
    hidden      BIGINT NOT NULL DEFAULT 0 CHECK (hidden IN (0, 1)),
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);

CREATE TABLE sources (
    name           TEXT PRIMARY KEY,
    type           TEXT NOT NULL,
    connection_url TEXT NOT NULL,
    description    TEXT,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL
);
CREATE INDEX sources_created ON sources (created_at);

CREATE TABLE tags (
    name        TEXT PRIMARY KEY,
    description TEXT
);

-- observed: facets that readers of a dataset reported, kept only while a version of it is
-- implied, that is, known from its readers alone.
CREATE TABLE datasets (
    id                 UUID PRIMARY KEY,
    namespace          TEXT NOT NULL,
    name               TEXT NOT NULL,
    type               TEXT NOT NULL,
    physical_name      TEXT NOT NULL,
    source_name        TEXT NOT NULL,
    description        TEXT,
    description_stamp  BIGINT NOT NULL DEFAULT 0,
    current_version_id UUID,
    published_at       BIGINT,
    latest_version_id  UUID,
    latest_number      BIGINT NOT NULL DEFAULT 0,
    version_count      BIGINT NOT NULL DEFAULT 0,
    implied_version_id UUID,
    observed           TEXT NOT NULL DEFAULT '{}',
    tags               TEXT NOT NULL DEFAULT '[]',
    field_tags         TEXT NOT NULL DEFAULT '{}',
    lifecycle          TEXT NOT NULL DEFAULT '',
    hidden             BIGINT NOT NULL DEFAULT 0 CHECK (hidden IN (0, 1)),
    hidden_at          BIGINT NOT NULL DEFAULT 0,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL,
    CHECK ((current_version_id IS NULL) = (published_at IS NULL))
);
CREATE UNIQUE INDEX datasets_by_name ON datasets (namespace, name);
CREATE INDEX datasets_created ON datasets (created_at, hidden);

-- When each facet in datasets.observed was last said. Apart, because it changes with every reader
-- and the dataset does not.
CREATE TABLE dataset_sightings (
    dataset_id UUID PRIMARY KEY,
    stamps     TEXT NOT NULL
) WITHOUT ROWID;

-- A second name (symlink) of a dataset; id is the digest of that second name.
CREATE TABLE dataset_aliases (
    id         UUID PRIMARY KEY,
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    dataset_id UUID NOT NULL,
    type       TEXT NOT NULL
);
CREATE INDEX dataset_aliases_by_dataset ON dataset_aliases (dataset_id);

-- origin: RUN (run_id made it), DECLARED (stated without a run), IMPLIED (run_id NULL; first named by a reader).
-- published_at: when it could become current: its run's completion, or its declaration.
CREATE TABLE dataset_versions (
    id            UUID PRIMARY KEY,
    dataset_id    UUID NOT NULL,
    number        BIGINT NOT NULL,
    origin        TEXT NOT NULL CHECK (origin IN ('RUN', 'DECLARED', 'IMPLIED')),
    run_id        UUID,
    schema_id     UUID NOT NULL,
    fields        TEXT NOT NULL,
    facets        TEXT NOT NULL,
    stamps        TEXT NOT NULL,
    type          TEXT NOT NULL,
    physical_name TEXT NOT NULL,
    source_name   TEXT NOT NULL,
    description   TEXT,
    lifecycle     TEXT NOT NULL DEFAULT '',
    column_set_id UUID,
    created_at    BIGINT NOT NULL,
    published_at  BIGINT,
    CHECK ((origin = 'RUN') = (run_id IS NOT NULL))
);
CREATE UNIQUE INDEX dataset_versions_by_number ON dataset_versions (dataset_id, number);
CREATE INDEX dataset_versions_published ON dataset_versions (dataset_id, published_at, id)
    WHERE published_at IS NOT NULL;
CREATE INDEX dataset_versions_declared ON dataset_versions (created_at, id) WHERE origin = 'DECLARED';

CREATE TABLE jobs (
    id                 UUID PRIMARY KEY,
    namespace          TEXT NOT NULL,
    name               TEXT NOT NULL,
    type               TEXT NOT NULL CHECK (type IN ('BATCH', 'STREAM', 'SERVICE')),
    type_stamp         BIGINT NOT NULL DEFAULT 0,
    description        TEXT,
    description_stamp  BIGINT NOT NULL DEFAULT 0,
    location           TEXT,
    location_stamp     BIGINT NOT NULL DEFAULT 0,
    parent_job_id      UUID,
    parent_stamp       BIGINT NOT NULL DEFAULT 0,
    current_version_id UUID,
    version_at         BIGINT NOT NULL DEFAULT 0,
    latest_run_id      UUID,
    latest_run_at      BIGINT,
    latest_run_state   TEXT NOT NULL DEFAULT '',
    run_count          BIGINT NOT NULL DEFAULT 0,
    version_count      BIGINT NOT NULL DEFAULT 0,
    tags               TEXT NOT NULL DEFAULT '[]',
    labels             TEXT NOT NULL DEFAULT '[]',
    facets             TEXT NOT NULL DEFAULT '{}',
    stamps             TEXT NOT NULL DEFAULT '{}',
    hidden             BIGINT NOT NULL DEFAULT 0 CHECK (hidden IN (0, 1)),
    hidden_at          BIGINT NOT NULL DEFAULT 0,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL
);
-- A run changes its job's place in each of these, so there are few: a list without a state asks for
-- every state.
CREATE INDEX jobs_by_state ON jobs (latest_run_state, hidden, updated_at, id);
CREATE INDEX jobs_of_namespace_by_state ON jobs (namespace, latest_run_state, hidden, updated_at, id);
CREATE INDEX jobs_created ON jobs (created_at, hidden);

-- inputs and outputs: JSON lists of {"namespace", "name"}, sorted. declared_at: when last stated without a run.
CREATE TABLE job_versions (
    id            UUID PRIMARY KEY,
    job_id        UUID NOT NULL,
    location      TEXT,
    inputs        TEXT NOT NULL,
    outputs       TEXT NOT NULL,
    latest_run_id UUID,
    created_at    BIGINT NOT NULL,
    declared_at   BIGINT
);
CREATE INDEX job_versions_by_job ON job_versions (job_id, created_at, id);
CREATE INDEX job_versions_declared ON job_versions (job_id, declared_at) WHERE declared_at IS NOT NULL;

-- Every edge a job ever had; current = 1 for those of its current version or a run that is still going.
CREATE TABLE job_edges (
    job_id     UUID NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('INPUT', 'OUTPUT')),
    dataset_id UUID NOT NULL,
    current    BIGINT NOT NULL CHECK (current IN (0, 1)),
    first_at   BIGINT NOT NULL,
    PRIMARY KEY (job_id, role, dataset_id)
) WITHOUT ROWID;
-- Without `current`: an index that has it tempts PostgreSQL to start from there.
CREATE INDEX job_edges_by_dataset ON job_edges (dataset_id, role, job_id);

-- stamps: {"run": {facet: stamp}, "job": {facet: stamp}}.
CREATE TABLE runs (
    id             UUID PRIMARY KEY,
    external_id    TEXT,
    job_id         UUID NOT NULL,
    job_version_id UUID,
    parent_run_id  UUID,
    state          TEXT NOT NULL CHECK (state IN ('NEW', 'RUNNING', 'COMPLETED', 'FAILED', 'ABORTED')),
    nominal_start  BIGINT,
    nominal_end    BIGINT,
    args           TEXT NOT NULL DEFAULT '{}',
    started_at     BIGINT,
    ended_at       BIGINT,
    facets         TEXT NOT NULL DEFAULT '{}',
    job_facets     TEXT NOT NULL DEFAULT '{}',
    stamps         TEXT NOT NULL DEFAULT '{}',
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    CHECK ((ended_at IS NOT NULL) = (state IN ('COMPLETED', 'FAILED', 'ABORTED'))),
    CHECK ((started_at IS NULL) = (state = 'NEW'))
);
CREATE INDEX runs_by_job ON runs (job_id, created_at, id);
CREATE INDEX runs_ended ON runs (job_id, ended_at);
CREATE INDEX runs_by_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;

-- What a run read and wrote. facets: the input or output facets of this run.
CREATE TABLE run_datasets (
    run_id     UUID NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('INPUT', 'OUTPUT')),
    dataset_id UUID NOT NULL,
    version_id UUID NOT NULL,
    facets     TEXT NOT NULL DEFAULT '{}',
    stamps     TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (run_id, role, dataset_id)
) WITHOUT ROWID;
CREATE INDEX run_datasets_by_version ON run_datasets (version_id) WHERE role = 'INPUT';

-- What column lineage a dataset version has; versions that report the same share a set.
CREATE TABLE column_edges (
    set_id           UUID NOT NULL,
    dataset_id       UUID NOT NULL,
    field            TEXT NOT NULL,
    input_dataset_id UUID NOT NULL,
    input_field      TEXT NOT NULL,
    description      TEXT,
    type             TEXT,
    PRIMARY KEY (set_id, field, input_dataset_id, input_field)
) WITHOUT ROWID;
CREATE INDEX column_edges_by_input ON column_edges (input_dataset_id, input_field);

-- What was received, word for word.
CREATE TABLE event_counts (
    hour       BIGINT NOT NULL,
    event_type TEXT NOT NULL,
    total      BIGINT NOT NULL,
    PRIMARY KEY (hour, event_type)
) WITHOUT ROWID;

-- How many visible datasets and jobs a namespace has, so that no list counts what it does not return.
CREATE TABLE tallies (
    kind      TEXT NOT NULL CHECK (kind IN ('DATASET', 'JOB')),
    namespace TEXT NOT NULL,
    state     TEXT NOT NULL,
    total     BIGINT NOT NULL,
    PRIMARY KEY (kind, namespace, state)
) WITHOUT ROWID;
