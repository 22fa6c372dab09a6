CREATE INDEX lot_status_by_lot ON lot_status (lot, dataset_id) WHERE role = 'OUTPUT';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('lot_status', 'lot_status_by_lot', '1000000 100 1');
