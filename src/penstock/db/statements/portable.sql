-- The database's own statements.

-- name: next_epoch
-- Take the writer's turn; PostgreSQL's lock on this row lasts until the transaction ends.
UPDATE writer SET epoch = epoch + 1 WHERE id = 1 RETURNING epoch

-- name: newest_migration
-- The newest step of the schema; asked for after next_epoch, which one that goes on may have held up.
SELECT MAX(number) FROM schema_migrations

-- name: last_epoch
-- The number of the last write.
SELECT epoch FROM writer WHERE id = 1

-- name: create_schema_migrations
-- Make the ledger of migrations, which no migration can make.
CREATE TABLE IF NOT EXISTS schema_migrations (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)

-- name: applied_migrations
-- The migrations that this database has had, oldest first.
SELECT number, name, checksum FROM schema_migrations ORDER BY number

-- name: database_began_at
-- When this database was made.
SELECT MIN(applied_at) FROM schema_migrations

-- name: record_migration
-- Remember that a migration was applied.
INSERT INTO schema_migrations (number, name, checksum, applied_at)
VALUES (:number, :name, :checksum, :applied_at)
