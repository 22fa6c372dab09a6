-- Nearly all runs are in one state: the state alone must not be taken for the way to a few of them.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('runs', 'runs_by_job', '1000000 100 1 1'),
    ('runs', 'runs_ended', '1000000 100 1'),
    ('runs', 'runs_of_parent', '100000 10 3'),
    ('runs', 'runs_by_state', '1000000 200000 1 1'),
    ('runs', 'runs_of_namespace_by_state', '1000000 20000 4000 1 1');
