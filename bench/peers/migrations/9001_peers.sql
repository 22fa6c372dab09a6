-- The tables of the systems that Penstock is measured against.

CREATE TABLE single_events (
    id         UUID PRIMARY KEY,
    event_time BIGINT NOT NULL,
    event_type TEXT NOT NULL,
    run_id     UUID NOT NULL,
    payload    TEXT NOT NULL
);
CREATE INDEX single_events_by_time ON single_events (event_time);
CREATE INDEX single_events_by_run ON single_events (run_id);

CREATE TABLE single_namespaces (
    name       TEXT PRIMARY KEY,
    created_at BIGINT NOT NULL
);

CREATE TABLE single_sources (
    name       TEXT PRIMARY KEY,
    type       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE single_jobs (
    id                 UUID PRIMARY KEY,
    namespace          TEXT NOT NULL,
    name               TEXT NOT NULL,
    type               TEXT NOT NULL,
    current_version_id UUID,
    current_run_id     UUID,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL
);
CREATE UNIQUE INDEX single_jobs_by_name ON single_jobs (namespace, name);

CREATE TABLE single_job_versions (
    id            UUID PRIMARY KEY,
    job_id        UUID NOT NULL,
    latest_run_id UUID,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL
);
CREATE INDEX single_job_versions_by_job ON single_job_versions (job_id);

CREATE TABLE single_run_args (
    checksum   TEXT PRIMARY KEY,
    args       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE single_runs (
    id             UUID PRIMARY KEY,
    job_id         UUID NOT NULL,
    job_version_id UUID,
    args_checksum  TEXT NOT NULL,
    state          TEXT,
    started_at     BIGINT,
    ended_at       BIGINT,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL
);
CREATE INDEX single_runs_by_job ON single_runs (job_id, created_at);

CREATE TABLE single_run_states (
    run_id UUID NOT NULL,
    state  TEXT NOT NULL,
    at     BIGINT NOT NULL
);
CREATE INDEX single_run_states_by_run ON single_run_states (run_id);

CREATE TABLE single_facets (
    owner_id UUID NOT NULL,
    run_id   UUID NOT NULL,
    kind     TEXT NOT NULL,
    facets   TEXT NOT NULL,
    at       BIGINT NOT NULL
);
CREATE INDEX single_facets_by_owner ON single_facets (owner_id);

CREATE TABLE single_datasets (
    id                 UUID PRIMARY KEY,
    namespace          TEXT NOT NULL,
    source             TEXT NOT NULL,
    name               TEXT NOT NULL,
    physical_name      TEXT NOT NULL,
    current_version_id UUID,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL
);
CREATE UNIQUE INDEX single_datasets_by_name ON single_datasets (namespace, name);

CREATE TABLE single_symlinks (
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    dataset_id UUID NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE single_versions (
    id         UUID PRIMARY KEY,
    dataset_id UUID NOT NULL,
    run_id     UUID,
    fields     TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX single_versions_by_dataset ON single_versions (dataset_id, created_at);

CREATE TABLE single_run_io (
    run_id     UUID NOT NULL,
    role       TEXT NOT NULL,
    version_id UUID NOT NULL,
    PRIMARY KEY (run_id, role, version_id)
);
