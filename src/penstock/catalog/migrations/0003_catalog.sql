-- The catalog: namespaces, datasets, jobs, runs and the lineage between them.
-- Times are microseconds since 1970 (UTC); JSON is text; booleans are 0 or 1.
-- The ids of datasets and jobs are digests of their names: no row waits for the id of another.
-- WITHOUT ROWID is for SQLite: it keeps a narrow table in the order of its key.

-- hidden_at: when the namespace was last deleted. Rows hidden with it have exactly this time.
CREATE TABLE namespaces (
    name        TEXT PRIMARY KEY,
    owner_name  TEXT NOT NULL,
    description TEXT,
    hidden      BIGINT NOT NULL DEFAULT 0 CHECK (hidden IN (0, 1)),
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    hidden_at   BIGINT NOT NULL DEFAULT 0
);

-- Runs of jobs in grantee may write the datasets of namespace like their own.
CREATE TABLE namespace_grants (
    namespace  TEXT NOT NULL,
    grantee    TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, grantee)
) WITHOUT ROWID;

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

-- The tags that something in a namespace carries, or carried once. A key for one namespace sees
-- only these.
CREATE TABLE tag_uses (
    namespace TEXT NOT NULL,
    tag       TEXT NOT NULL,
    PRIMARY KEY (namespace, tag)
) WITHOUT ROWID;

-- observed: facets reported by readers of the dataset; kept only while a version is implied, that
-- is, known from its readers alone.
-- declared: facets stated without a run; valid for every version until a later statement.
-- declared_column_set_id: the column lineage that was last stated without a run.
CREATE TABLE datasets (
    id                     UUID PRIMARY KEY,
    namespace              TEXT NOT NULL,
    name                   TEXT NOT NULL,
    type                   TEXT NOT NULL,
    physical_name          TEXT NOT NULL,
    source_name            TEXT NOT NULL,
    description            TEXT,
    description_stamp      BIGINT NOT NULL DEFAULT 0,
    current_version_id     UUID,
    published_at           BIGINT,
    latest_version_id      UUID,
    latest_number          BIGINT NOT NULL DEFAULT 0,
    version_count          BIGINT NOT NULL DEFAULT 0,
    implied_version_id     UUID,
    observed               TEXT NOT NULL DEFAULT '{}',
    tags                   TEXT NOT NULL DEFAULT '[]',
    field_tags             TEXT NOT NULL DEFAULT '{}',
    lifecycle              TEXT NOT NULL DEFAULT '',
    hidden                 BIGINT NOT NULL DEFAULT 0 CHECK (hidden IN (0, 1)),
    hidden_at              BIGINT NOT NULL DEFAULT 0,
    created_at             BIGINT NOT NULL,
    updated_at             BIGINT NOT NULL,
    declared               TEXT NOT NULL DEFAULT '{}',
    declared_stamps        TEXT NOT NULL DEFAULT '{}',
    declared_column_set_id UUID,
    CHECK ((current_version_id IS NULL) = (published_at IS NULL))
);
CREATE UNIQUE INDEX datasets_by_name ON datasets (namespace, name);
CREATE INDEX datasets_created ON datasets (created_at, hidden);
-- A key for one namespace sees the sources of its datasets; each source is looked up here.
CREATE INDEX datasets_by_source ON datasets (source_name, namespace);

-- When each facet in datasets.observed was last reported. A table of its own: it changes with every
-- reader, and the dataset does not.
CREATE TABLE dataset_sightings (
    dataset_id UUID PRIMARY KEY,
    stamps     TEXT NOT NULL
) WITHOUT ROWID;

-- A second name (symlink) of a dataset; id is the digest of the second name.
CREATE TABLE dataset_aliases (
    id         UUID PRIMARY KEY,
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    dataset_id UUID NOT NULL,
    type       TEXT NOT NULL
);
CREATE INDEX dataset_aliases_by_dataset ON dataset_aliases (dataset_id);

-- Where the schema of a stream is kept, as its declaration states it.
CREATE TABLE stream_schemas (
    dataset_id UUID PRIMARY KEY,
    location   TEXT NOT NULL
) WITHOUT ROWID;

-- origin: RUN (run_id wrote it), DECLARED (stated without a run) or IMPLIED (a reader named it
-- first). published_at: when it could become current: when its run completed, or its declaration.
-- unconfirmed: reported with a key that may not write the dataset; such a version is never published.
CREATE TABLE dataset_versions (
    id               UUID PRIMARY KEY,
    dataset_id       UUID NOT NULL,
    number           BIGINT NOT NULL,
    origin           TEXT NOT NULL CHECK (origin IN ('RUN', 'DECLARED', 'IMPLIED')),
    run_id           UUID,
    schema_id        UUID NOT NULL,
    fields           TEXT NOT NULL,
    facets           TEXT NOT NULL,
    stamps           TEXT NOT NULL,
    type             TEXT NOT NULL,
    physical_name    TEXT NOT NULL,
    source_name      TEXT NOT NULL,
    description      TEXT,
    lifecycle        TEXT NOT NULL DEFAULT '',
    column_set_id    UUID,
    created_at       BIGINT NOT NULL,
    published_at     BIGINT,
    unconfirmed      BIGINT NOT NULL DEFAULT 0,
    inherited_set_id UUID,
    CHECK ((origin = 'RUN') = (run_id IS NOT NULL))
);
CREATE UNIQUE INDEX dataset_versions_by_number ON dataset_versions (dataset_id, number);
CREATE INDEX dataset_versions_published ON dataset_versions (dataset_id, published_at, id)
    WHERE published_at IS NOT NULL;
CREATE INDEX dataset_versions_declared ON dataset_versions (created_at, id) WHERE origin = 'DECLARED';
CREATE INDEX dataset_versions_by_inherited_set ON dataset_versions (inherited_set_id)
    WHERE inherited_set_id IS NOT NULL;

-- The facets that a version inherits from the version published before it. Versions that inherit
-- the same facets share a set, and a set never changes.
CREATE TABLE facet_sets (
    id         UUID PRIMARY KEY,
    dataset_id UUID NOT NULL,
    facets     TEXT NOT NULL,
    stamps     TEXT NOT NULL
);

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
-- Every run moves its job in each of these indexes, so there are few: a list without a state reads
-- them once for each state.
CREATE INDEX jobs_by_state ON jobs (latest_run_state, hidden, updated_at, id);
CREATE INDEX jobs_of_namespace_by_state ON jobs (namespace, latest_run_state, hidden, updated_at, id);
CREATE INDEX jobs_created ON jobs (created_at, hidden);

-- inputs and outputs: JSON lists of {"namespace", "name"}, sorted.
-- declared_at: when the version was last stated without a run.
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

-- Every edge that a job ever had. current = 1: an edge of its current version, or of a run that has
-- not ended.
CREATE TABLE job_edges (
    job_id     UUID NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('INPUT', 'OUTPUT')),
    dataset_id UUID NOT NULL,
    current    BIGINT NOT NULL CHECK (current IN (0, 1)),
    first_at   BIGINT NOT NULL,
    PRIMARY KEY (job_id, role, dataset_id)
) WITHOUT ROWID;
-- Without `current`: PostgreSQL would start from an index that has it.
CREATE INDEX job_edges_by_dataset ON job_edges (dataset_id, role, job_id);

-- stamps: {"run": {facet: stamp}, "job": {facet: stamp}}.
-- namespace: the job's, so that lists by namespace and state need no join.
CREATE TABLE runs (
    id             UUID PRIMARY KEY,
    external_id    TEXT,
    job_id         UUID NOT NULL,
    job_version_id UUID,
    parent_run_id  UUID,
    state          TEXT NOT NULL {check state RunState},
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
    namespace      TEXT NOT NULL DEFAULT '',
    CHECK ((ended_at IS NOT NULL) = (state IN ('COMPLETED', 'FAILED', 'ABORTED'))),
    CHECK ((started_at IS NULL) = (state = 'NEW'))
);
CREATE INDEX runs_by_job ON runs (job_id, created_at, id);
CREATE INDEX runs_ended ON runs (job_id, ended_at);
CREATE INDEX runs_by_state ON runs (state, created_at, id);
CREATE INDEX runs_of_namespace_by_state ON runs (namespace, state, created_at, id);
-- Finds the unfinished children of a run, however many children have ended.
CREATE INDEX runs_of_parent ON runs (parent_run_id, state) WHERE parent_run_id IS NOT NULL;

-- The inputs and outputs of runs. facets: the input or output facets of this run.
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

-- The runs that reported on the quality of a version: tests of it, or figures about it. The report
-- itself is a facet in run_datasets; few rows there have one.
CREATE TABLE quality_reports (
    run_id     UUID NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('INPUT', 'OUTPUT')),
    dataset_id UUID NOT NULL,
    version_id UUID NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (run_id, role, dataset_id)
) WITHOUT ROWID;
CREATE INDEX quality_reports_by_version ON quality_reports (version_id, at, run_id);

-- The column lineage of dataset versions. Versions that report the same edges share a set.
-- indirect = 1: the field depends on the input field, but its value is not derived from it. An empty
-- field stands for every field of the dataset.
CREATE TABLE column_edges (
    set_id           UUID NOT NULL,
    dataset_id       UUID NOT NULL,
    field            TEXT NOT NULL,
    input_dataset_id UUID NOT NULL,
    input_field      TEXT NOT NULL,
    description      TEXT,
    type             TEXT,
    indirect         BIGINT NOT NULL DEFAULT 0 CHECK (indirect IN (0, 1)),
    PRIMARY KEY (set_id, field, input_dataset_id, input_field)
) WITHOUT ROWID;
CREATE INDEX column_edges_by_input ON column_edges (input_dataset_id, input_field);

-- OpenLineage events, byte for byte as they were received.
CREATE TABLE events (
    id          {identity},
    event_time  BIGINT NOT NULL,
    received_at BIGINT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('RUN', 'JOB', 'DATASET')),
    namespace   TEXT NOT NULL,
    event_type  TEXT NOT NULL,
    run_id      UUID,
    payload     TEXT NOT NULL
);
CREATE INDEX events_by_run ON events (run_id) WHERE run_id IS NOT NULL;
-- Clients of Marquez list the events of runs alone: kind comes first, so that no list reads through
-- events of other kinds.
CREATE INDEX events_by_kind ON events (kind, event_time, id);
CREATE INDEX events_of_namespace_by_kind ON events (namespace, kind, event_time, id);

-- Events per hour. Events without a run are counted under their kind.
CREATE TABLE event_counts (
    hour       BIGINT NOT NULL,
    event_type TEXT NOT NULL,
    total      BIGINT NOT NULL,
    PRIMARY KEY (hour, event_type)
) WITHOUT ROWID;

-- Visible datasets and jobs per namespace and state, so that a list need not count its rows.
CREATE TABLE tallies (
    kind      TEXT NOT NULL CHECK (kind IN ('DATASET', 'JOB')),
    namespace TEXT NOT NULL,
    state     TEXT NOT NULL,
    total     BIGINT NOT NULL,
    PRIMARY KEY (kind, namespace, state)
) WITHOUT ROWID;

-- How long runs and versions are needed: needed_until is a time, and 9223372036854775807 means for
-- ever. A row whose time has passed may be pruned.

-- Runs, versions and datasets that other rooms need. Those rooms replace these views by their own.
-- Such runs and versions are needed for ever. Such a dataset keeps its id: it is never merged into
-- another one.
CREATE VIEW kept_runs AS SELECT r.id FROM runs r WHERE 1 = 0;
CREATE VIEW kept_versions AS SELECT v.id FROM dataset_versions v WHERE 1 = 0;
CREATE VIEW kept_datasets AS SELECT d.id FROM datasets d WHERE 1 = 0;

-- How long a run is needed for its own sake: until it ended, or for ever if it has not ended, is the
-- latest run of its job, wrote the current or latest version of a dataset, or is in kept_runs.
CREATE VIEW run_merits AS
SELECT r.id,
       CASE WHEN r.ended_at IS NULL
              OR EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.job_id AND j.latest_run_id = r.id)
              OR EXISTS (SELECT 1 FROM run_datasets w JOIN datasets d ON d.id = w.dataset_id
                         WHERE w.run_id = r.id AND w.role = 'OUTPUT'
                           AND (d.current_version_id = w.version_id
                                OR d.latest_version_id = w.version_id))
              OR EXISTS (SELECT 1 FROM kept_runs k WHERE k.id = r.id)
            THEN 9223372036854775807
            ELSE r.ended_at
       END AS until
FROM runs r;

-- A run is needed as long as the run itself or a reader of its outputs has merit. A reader that is
-- needed only by its own readers does not count. Otherwise a job that reads its own last output
-- would need all its runs for ever.
CREATE VIEW run_needs AS
SELECT r.id, r.job_id, r.job_version_id, r.ended_at,
       (SELECT MAX(n.until)
        FROM (SELECT m.until FROM run_merits m WHERE m.id = r.id
              UNION ALL
              SELECT m.until
              FROM run_datasets w
              JOIN run_datasets u ON u.version_id = w.version_id AND u.role = 'INPUT'
              JOIN run_merits m ON m.id = u.run_id
              WHERE w.run_id = r.id AND w.role = 'OUTPUT') n) AS needed_until
FROM runs r;

-- A version written by a run is needed as long as the run. A declared version is needed while it is
-- the current or latest one, or a reader of it has merit. An implied version is needed for ever.
CREATE VIEW version_needs AS
SELECT v.id, v.dataset_id, v.origin, v.column_set_id, v.created_at,
       CASE WHEN v.origin = 'RUN'
            THEN COALESCE((SELECT n.needed_until FROM run_needs n WHERE n.id = v.run_id),
                          9223372036854775807)
            WHEN v.origin = 'IMPLIED'
              OR EXISTS (SELECT 1 FROM datasets d WHERE d.id = v.dataset_id
                           AND (d.current_version_id = v.id OR d.latest_version_id = v.id))
              OR EXISTS (SELECT 1 FROM kept_versions k WHERE k.id = v.id)
            THEN 9223372036854775807
            ELSE (SELECT MAX(n.until)
                  FROM (SELECT v.created_at AS until
                        UNION ALL
                        SELECT m.until
                        FROM run_datasets u JOIN run_merits m ON m.id = u.run_id
                        WHERE u.version_id = v.id AND u.role = 'INPUT') n)
       END AS needed_until
FROM dataset_versions v;
