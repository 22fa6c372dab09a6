-- Makes the table of statistics. Nobody analyses a database that users keep in a file: each room
-- writes there once how its tables look when they have grown, and SQLite plans for that.
ANALYZE;
