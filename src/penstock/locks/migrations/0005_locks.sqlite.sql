CREATE TABLE lot_log (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    action     TEXT NOT NULL,
    lot        TEXT NOT NULL,
    job_id     TEXT,
    dataset_id TEXT,
    run_id     TEXT,
    was        TEXT NOT NULL,
    became     TEXT NOT NULL,
    who        TEXT NOT NULL,
    why        TEXT NOT NULL
);
CREATE INDEX lot_log_of_job ON lot_log (job_id, id) WHERE job_id IS NOT NULL;
CREATE INDEX lot_log_of_work ON lot_log (job_id, lot) WHERE job_id IS NOT NULL;
CREATE INDEX lot_log_of_lot ON lot_log (dataset_id, lot) WHERE dataset_id IS NOT NULL;
