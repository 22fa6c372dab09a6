INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('lot_work', 'lot_work_renewed', '100 1');
