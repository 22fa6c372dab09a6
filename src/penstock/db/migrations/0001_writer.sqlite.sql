-- Create the table of statistics. A database in a file is never analyzed by its users. Instead, the
-- migrations store the statistics of tables that have grown, and SQLite plans for those.
ANALYZE;
