-- What happened to lots, in the order in which it was committed: the outbox.
CREATE TABLE lot_events (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    dataset_id TEXT NOT NULL,
    lot        TEXT NOT NULL,
    state      TEXT NOT NULL,
    version_id TEXT,
    job_id     TEXT,
    run_id     TEXT
);
