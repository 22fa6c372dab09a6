-- Fifty datasets with twenty thousand arrived objects each: a few in each lot, and few refused. A
-- hundred backfills that have started ten thousand lots each: few still run, and few failed.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('arc_attempts', 'arc_attempts_of_lot', '1000 100 2'),
    ('arrived_objects', 'arrived_objects', '1000000 20000 1'),
    ('arrived_objects', 'arrived_objects_of_lot', '1000000 20000 5'),
    ('arrived_objects', 'arrived_objects_refused', '1000 20 1'),
    ('backfill_lots', 'backfill_lots', '1000000 10000 1'),
    ('backfill_lots', 'backfill_lots_going', '100 10'),
    ('backfill_lots', 'backfill_lots_failed', '1000 10');
