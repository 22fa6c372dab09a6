-- Fifty datasets at which twenty thousand objects have arrived, a few in each lot, and few refused; a
-- hundred backfills that have set ten thousand lots going, of which few still go and few failed.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('arrived_objects', 'arrived_objects', '1000000 20000 1'),
    ('arrived_objects', 'arrived_objects_of_lot', '1000000 20000 5'),
    ('arrived_objects', 'arrived_objects_refused', '1000 20 1'),
    ('backfill_lots', 'backfill_lots', '1000000 10000 1'),
    ('backfill_lots', 'backfill_lots_going', '100 10'),
    ('backfill_lots', 'backfill_lots_failed', '1000 10');
