INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('lot_manifests', 'sqlite_autoindex_lot_manifests_1', '1000000 1'),
    ('lot_manifests', 'lot_manifests_of_lot', '1000000 10000 1'),
    ('lot_manifests', 'lot_manifests_odd', '1000 20 1 1 1'),
    ('lot_manifests', 'lot_manifests_partial', '100 10 1 1');
