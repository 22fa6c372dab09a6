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

-- A hundred jobs with ten thousand lots each, nearly all of them done.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('lot_work', 'lot_work', '1000000 10000 1'),
    ('lot_work', 'lot_work_ready', '1000 100 100 1'),
    ('lot_work', 'lot_work_stuck', '1000 100 50 50 1'),
    ('lot_work', 'lot_work_leases', '100 1'),
    ('lot_work', 'lot_work_later', '100 1'),
    ('lot_work', 'lot_work_stale', '100 10 1'),
    ('lot_status', 'lot_status', '2000000 20000 2 1 1'),
    ('lot_status', 'lot_status_one_writer', '1000000 10000 1'),
    ('lot_log', 'lot_log_of_job', '3000000 30000 1'),
    ('lot_log', 'lot_log_of_work', '3000000 30000 3'),
    ('lot_log', 'lot_log_of_lot', '1000000 10000 1'),
    ('lot_reasons', 'lot_reasons', '1000 20 1'),
    ('lot_reasons', 'lot_reasons_of_lot', '1000 2');
