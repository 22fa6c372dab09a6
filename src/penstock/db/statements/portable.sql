-- The statements of the database itself.

-- name: next_epoch
-- Take the writer's turn; on PostgreSQL the lock on this row lasts until the transaction ends.
UPDATE writer SET epoch = epoch + 1 WHERE id = 1 RETURNING epoch

-- name: newest_migration
-- Find the newest step of the schema; run after next_epoch, which may have waited for a
-- migration.
SELECT MAX(number) FROM schema_migrations

-- name: last_epoch
-- Find the number of the last write.
SELECT epoch FROM writer WHERE id = 1

-- name: create_schema_migrations
-- Create the ledger of migrations, which no migration can create.
CREATE TABLE IF NOT EXISTS schema_migrations (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)

-- name: applied_migrations
-- List the applied migrations, oldest first.
SELECT number, name, checksum FROM schema_migrations ORDER BY number

-- name: database_began_at
-- Find when this database was created.
SELECT MIN(applied_at) FROM schema_migrations

-- name: record_migration
-- Record an applied migration.
INSERT INTO schema_migrations (number, name, checksum, applied_at)
VALUES (:number, :name, :checksum, :applied_at)
