-- Runs of ours that have ended, in the order in which that was committed: the outbox of runs.
CREATE TABLE run_ends (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    run_id TEXT NOT NULL
);
