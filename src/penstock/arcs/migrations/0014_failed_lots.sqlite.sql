INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('lot_work', 'lot_work_failed', '500 50 1'),
    ('arc_attempts', 'arc_attempts_of_lot', '1000 100 2');
