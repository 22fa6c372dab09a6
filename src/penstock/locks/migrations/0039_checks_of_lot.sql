-- What checks said about one lot, in the order in which it is shown: SQLite would rather walk
-- through all that they said about its dataset than sort.
DROP INDEX lot_checks_of_lot;
CREATE INDEX lot_checks_of_lot ON lot_checks (dataset_id, lot, at);
