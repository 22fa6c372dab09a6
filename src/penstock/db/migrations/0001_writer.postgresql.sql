-- Every write adds a version of the one row. A nearly full page makes the next reader remove the
-- old versions; otherwise a reader first passes up to two hundred of them.
ALTER TABLE writer SET (fillfactor = 10);
