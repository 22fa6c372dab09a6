-- name: make_at_once
-- Differs by necessity: PostgreSQL takes a row of statements in one trip anyway. Have a view whose
-- triggers do what named statements say: an INSERT into it is a whole transaction.
CREATE TEMP VIEW at_once (kind, text) AS SELECT 0, ''

-- name: teach_turn
-- Differs by necessity: see make_at_once. Take the writer's turn, if it is that of this epoch.
CREATE TEMP TRIGGER at_once_turn INSTEAD OF INSERT ON at_once WHEN new.kind = 0 BEGIN
    SELECT RAISE(ABORT, 'overtaken') FROM writer WHERE id = 1 AND epoch + 1 <> CAST(new.text AS INTEGER);
    UPDATE writer SET epoch = epoch + 1 WHERE id = 1;
END

-- name: teach_kind
-- Differs by necessity: see make_at_once. Do what a statement says; KIND is its number, and STATEMENT
-- its SQL with its rows out of the JSON in new.text.
CREATE TEMP TRIGGER IF NOT EXISTS at_once_KIND INSTEAD OF INSERT ON at_once WHEN new.kind = KIND BEGIN
    STATEMENT;
END

-- name: write_at_once
-- Differs by necessity: see make_at_once. Write all that a transaction has, in this order.
INSERT INTO at_once (kind, text) {rows kind bigint, text long}

-- name: tables_of_others
-- Differs by necessity: each lists its tables in its own way. Some tables of a database that has any,
-- but not our ledger.
SELECT name FROM sqlite_schema
WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND (
    SELECT COUNT(*) FROM pragma_table_info('schema_migrations')
    WHERE name IN ('number', 'name', 'checksum', 'applied_at')
) < 4
ORDER BY name LIMIT 3
