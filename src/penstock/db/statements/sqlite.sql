-- name: create_transaction_view
-- Differs by necessity: PostgreSQL takes many statements in one round trip anyway. Create the
-- view whose triggers run named statements: an INSERT into it is a whole transaction.
CREATE TEMP VIEW transaction_parts (kind, text) AS SELECT 0, ''

-- name: create_turn_trigger
-- Differs by necessity: see create_transaction_view. Take the writer's turn, if it has this
-- epoch.
CREATE TEMP TRIGGER transaction_turn INSTEAD OF INSERT ON transaction_parts WHEN new.kind = 0 BEGIN
    SELECT RAISE(ABORT, 'overtaken') FROM writer WHERE id = 1 AND epoch + 1 <> CAST(new.text AS INTEGER);
    UPDATE writer SET epoch = epoch + 1 WHERE id = 1;
END

-- name: create_part_trigger
-- Differs by necessity: see create_transaction_view. Run one statement. KIND is its number, and
-- STATEMENT its SQL, which reads the rows from the JSON in new.text.
CREATE TEMP TRIGGER IF NOT EXISTS transaction_part_KIND INSTEAD OF INSERT ON transaction_parts WHEN new.kind = KIND BEGIN
    STATEMENT;
END

-- name: write_transaction
-- Differs by necessity: see create_transaction_view. Write all parts of a transaction in this
-- order.
INSERT INTO transaction_parts (kind, text) {rows kind bigint, text long}

-- name: tables_of_others
-- Differs by necessity: each database lists its tables in its own way. List some tables of a
-- database that has tables, but not the ledger of Penstock.
SELECT name FROM sqlite_schema
WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND (
    SELECT COUNT(*) FROM pragma_table_info('schema_migrations')
    WHERE name IN ('number', 'name', 'checksum', 'applied_at')
) < 4
ORDER BY name LIMIT 3
