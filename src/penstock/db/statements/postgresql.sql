-- name: lock_migrations
-- Differs by necessity: the BEGIN IMMEDIATE of SQLite locks the whole file; PostgreSQL locks a
-- number that all programs agree on.
SELECT pg_advisory_xact_lock(7302160415)

-- name: configure_reader
-- Differs by necessity: only PostgreSQL has settings of sessions. A cached plan was made for
-- tables as small as they were then, so plan each read again. Compiling a plan never pays.
SELECT set_config('jit', 'off', false),
       set_config('plan_cache_mode', 'force_custom_plan', false)

-- name: configure_writer
-- Differs by necessity: only PostgreSQL has settings of sessions. The writer finds rows by key.
-- One plan of nested loops over indexes, in the order of the joins, is right at every size and
-- never made again. By default PostgreSQL caches the plan of an empty table, and reads whole
-- tables for minutes. A writer that hangs loses its turn. Each statement must see the writes
-- that were committed while the first one waited for its turn.
SELECT set_config('jit', 'off', false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('default_transaction_read_only', 'off', false),
       set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('enable_seqscan', 'off', false),
       set_config('enable_hashjoin', 'off', false),
       set_config('enable_mergejoin', 'off', false),
       set_config('enable_material', 'off', false),
       set_config('join_collapse_limit', '1', false),
       set_config('lock_timeout', :wait, false),
       set_config('idle_in_transaction_session_timeout', '60s', false)

-- name: next_epoch_after
-- Differs by necessity: only on PostgreSQL is a write sent behind another one that may fail.
-- Take the turn only after a certain write, and only if the previous write of this session was
-- committed: a rollback restores the session's setting. Otherwise the epoch would be NULL, which
-- is refused.
UPDATE writer SET epoch = CASE
    WHEN epoch = :epoch AND :behind IN ('', current_setting('penstock.sent', true)) THEN epoch + 1
END
WHERE id = 1
RETURNING set_config('penstock.sent', :name, false)

-- name: tables_of_others
-- Differs by necessity: each database lists its tables in its own way. List some tables of a
-- schema that has tables, but not the ledger of Penstock. Tables of extensions do not count.
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'f')
    AND NOT EXISTS (
        SELECT 1 FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
    )
    AND (
        SELECT COUNT(*) FROM pg_attribute a
        WHERE a.attrelid = to_regclass('schema_migrations') AND NOT a.attisdropped
            AND a.attname IN ('number', 'name', 'checksum', 'applied_at')
    ) < 4
ORDER BY c.relname LIMIT 3
