-- Ten replays of ten thousand steps each.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('replay_steps', 'replay_steps', '100000 10000 1'),
    ('replay_steps', 'replay_steps_of_work', '100000 10000 1000 1'),
    ('replay_steps', 'replay_steps_by_state', '100000 10000 2000 1'),
    ('replay_steps', 'replay_steps_next', '1000 100 50 1'),
    ('replay_edges', 'replay_edges', '100000 10000 2 1');
