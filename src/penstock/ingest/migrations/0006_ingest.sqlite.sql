INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('search_keys', 'search_keys_by_key', '1000000 100000 2'),
    ('search_keys', 'search_keys_of_depositors', '10000 2 1');
