-- name: lock_migrations
-- Differs by necessity: SQLite's BEGIN IMMEDIATE locks the whole file, here programs agree on a
-- number. Migrations write, too: see configure_writer.
SELECT pg_advisory_xact_lock(7302160415), set_config('penstock.asks', 'newest', true)

-- name: configure_reader
-- Differs by necessity: only here does a session have settings. A plan that is kept was made for
-- tables as small as they were then, so each reading is planned anew; compiling one never pays.
SELECT set_config('jit', 'off', false),
       set_config('plan_cache_mode', 'force_custom_plan', false)

-- name: configure_writer
-- Differs by necessity: only here does a session have settings. The writer finds rows by key, so
-- one plan of nested loops over indexes, in the order the statement joins, is right at every size
-- and never made again; left alone, the plan of an empty table is kept and reads whole tables for
-- minutes. A writer that hangs loses its turn. Each statement must see what was committed while the
-- first one waited for its turn. Who does not say that it asks for the newest step is refused its turn
-- by a trigger: it is of a version from before 0062.
SELECT set_config('penstock.asks', 'newest', false),
       set_config('jit', 'off', false),
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
-- Differs by necessity: only here is a write sent behind one that may fail. Take the turn only after
-- a certain write, and only if what this session sent before it was committed: the session's setting
-- goes back with the transaction that made it. Else the epoch would be NULL, which is refused.
UPDATE writer SET epoch = CASE
    WHEN epoch = :epoch AND :behind IN ('', current_setting('penstock.sent', true)) THEN epoch + 1
END
WHERE id = 1
RETURNING set_config('penstock.sent', :name, false)

-- name: tables_of_others
-- Differs by necessity: each lists its tables in its own way. Some tables of a schema that has any,
-- but not our ledger; those of extensions are nobody's.
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
