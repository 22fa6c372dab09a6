-- How much of a long download has come; total: the bytes that are expected, 0 if nobody knows.
CREATE TABLE ingest_progress (
    job_id TEXT PRIMARY KEY,
    bytes BIGINT NOT NULL,
    total BIGINT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX ingest_progress_by_time ON ingest_progress (at);
