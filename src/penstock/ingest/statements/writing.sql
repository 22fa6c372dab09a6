-- The rows that the write queue loads and writes for ingest.

-- name: ingest_counters_by_names
-- Find the last numbers of batches and jobs.
SELECT c.name, c.value
FROM {each ids text AS k} JOIN ingest_counters c ON c.name = k.value;

-- name: put_ingest_counters
-- Write the last numbers of batches and jobs.
{upsert ingest_counters};

-- name: ingest_ranges_of_queues
-- Find the numbers that queues outside the database may give.
SELECT {columns ingest_ranges r}
FROM {each ids text AS k} JOIN ingest_ranges r ON r.queue = k.value;

-- name: put_ingest_ranges
-- Write the numbers that queues outside the database may give.
{upsert ingest_ranges};

-- name: ingest_sessions_by_ids
-- Find sessions by id.
SELECT {columns ingest_sessions s}
FROM {each ids text AS k} JOIN ingest_sessions s ON s.id = k.value;

-- name: silent_ingest_sessions
-- Find the sessions that have expired: the last heartbeat is too old, or is from a clock that
-- was ahead. There are only as many sessions as processes.
SELECT {columns ingest_sessions s}
FROM ingest_sessions s
WHERE NOT (s.alive_until > :now AND s.alive_until <= :now + 2 * s.lasts);

-- name: put_ingest_sessions
-- Write until when sessions are alive.
{upsert ingest_sessions, keep owner, lasts};

-- name: forget_ingest_sessions
-- Delete sessions that have expired.
DELETE FROM ingest_sessions WHERE id IN ({rows id text});

-- name: ingest_batches_by_ids
-- Find batches by id.
SELECT {columns ingest_batches b}
FROM {each ids text AS k} JOIN ingest_batches b ON b.id = k.value;

-- name: ingest_batches_by_keys
-- Find the batches that were submitted under these keys.
SELECT b.key_hash, b.id
FROM {each ids text AS k} JOIN ingest_batches b ON b.key_hash = k.value;

-- name: free_ingest_batches
-- List the unlocked batches in a state that are younger than one of them, oldest first. With an
-- equality on the state and only ids in the order, PostgreSQL might walk along the ids of all
-- completed batches.
SELECT {columns ingest_batches b}
FROM ingest_batches b
WHERE (b.status, b.id) > (:status, :after) AND b.status <= :status AND b.locked_by = ''
ORDER BY b.status, b.id
LIMIT :most;

-- name: ingest_batches_locked
-- Find the batches that a session has locked.
SELECT {columns ingest_batches b}
FROM ingest_batches b
WHERE b.locked_by = :session AND b.locked_by <> '';

-- name: put_ingest_batches
-- Write batches.
{upsert ingest_batches, keep collection, submission, key_hash};

-- name: forget_ingest_batches
-- Delete batches.
DELETE FROM ingest_batches WHERE id IN ({rows id text});

-- name: ingest_jobs_by_ids
-- Find ingest jobs by id.
SELECT {columns ingest_jobs j}
FROM {each ids text AS k} JOIN ingest_jobs j ON j.id = k.value;

-- name: free_ingest_jobs
-- List the unlocked jobs in a state, in the order of the queue, after one position.
SELECT {columns ingest_jobs j}
FROM ingest_jobs j
WHERE j.status = :status AND (j.priority, j.id) > (:priority, :id) AND j.locked_by = ''
ORDER BY j.priority, j.id
LIMIT :most;

-- name: ingest_jobs_locked
-- Find the jobs that a session has locked.
SELECT {columns ingest_jobs j}
FROM ingest_jobs j
WHERE j.locked_by = :session AND j.locked_by <> '';

-- name: ingest_locks_of_session
-- Find the jobs and batches that a session has locked, with their states.
SELECT j.id, j.status FROM ingest_jobs j WHERE j.locked_by = :session AND j.locked_by <> ''
UNION ALL
SELECT b.id, b.status FROM ingest_batches b WHERE b.locked_by = :session AND b.locked_by <> '';

-- name: put_ingest_jobs
-- Write new jobs.
{insert ingest_jobs};

-- name: advance_ingest_jobs
-- Write the columns of jobs that transitions change.
INSERT INTO ingest_jobs (id, batch_id, configuration, identifiers, status, side, last_successful_status, last_modified, retry_count, message, history, can_begin_again, keeps_priority, priority, space_needed, version, locked_by)
SELECT id, id, '', identifiers, status, side, last_successful_status, last_modified, retry_count, message, history, can_begin_again, keeps_priority, priority, space_needed, version, locked_by
FROM ({rows id text, identifiers text, status text, side text, last_successful_status text, last_modified bigint, retry_count bigint, message text, history text, can_begin_again bigint, keeps_priority bigint, priority bigint, space_needed bigint, version bigint, locked_by text}) r WHERE true
ON CONFLICT (id) DO UPDATE SET
    identifiers = excluded.identifiers,
    status = excluded.status,
    side = excluded.side,
    last_successful_status = excluded.last_successful_status,
    last_modified = excluded.last_modified,
    retry_count = excluded.retry_count,
    message = excluded.message,
    history = excluded.history,
    can_begin_again = excluded.can_begin_again,
    keeps_priority = excluded.keeps_priority,
    priority = excluded.priority,
    space_needed = excluded.space_needed,
    version = excluded.version,
    locked_by = excluded.locked_by;

-- name: forget_ingest_jobs
-- Delete jobs.
DELETE FROM ingest_jobs WHERE id IN ({rows id text});

-- name: ingest_tallies_by_batches
-- Find the number of jobs of batches in each state.
SELECT {columns ingest_tallies t}
FROM {each ids text AS k} JOIN ingest_tallies t ON t.batch_id = k.value;

-- name: put_ingest_tallies
-- Write the number of jobs of batches in each state.
{upsert ingest_tallies};

-- name: forget_ingest_tallies
-- Delete the counts of deleted batches.
DELETE FROM ingest_tallies WHERE batch_id IN ({rows id text});

-- name: all_ingest_holds
-- List all holds: few rows, read whole.
SELECT {columns ingest_holds h}
FROM ingest_holds h
ORDER BY h.kind, h.name;

-- name: put_ingest_holds
-- Hold collections or the queue.
{upsert ingest_holds};

-- name: forget_ingest_holds
-- Release holds on collections or the queue.
DELETE FROM ingest_holds
WHERE (kind, name) IN (SELECT kind, name FROM ({rows kind text, name text}) r);
