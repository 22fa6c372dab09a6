-- A view has the columns that its table had when it was made.
CREATE OR REPLACE VIEW stuck_work AS SELECT w.* FROM lot_work w WHERE w.state IN ('WAITING', 'LATER', 'HELD');
CREATE OR REPLACE VIEW running_work AS SELECT w.* FROM lot_work w WHERE w.state = 'RUNNING' ORDER BY w.lease_until LIMIT 10000000;
