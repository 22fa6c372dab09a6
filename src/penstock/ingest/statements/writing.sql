-- What the writer loads and writes of ingest.

-- name: ingest_counters_by_names
-- How far batches and jobs are numbered.
SELECT c.name, c.value
FROM {each ids text AS k} JOIN ingest_counters c ON c.name = k.value;

-- name: put_ingest_counters
-- Write how far batches and jobs are numbered.
INSERT INTO ingest_counters (name, value)
{rows name text, value bigint}
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: ingest_ranges_of_queues
-- Which numbers queues outside the database may give.
SELECT r.queue, r.name, r.first_number, r.last_number, r.given
FROM {each ids text AS k} JOIN ingest_ranges r ON r.queue = k.value;

-- name: put_ingest_ranges
-- Write which numbers queues outside the database may give.
INSERT INTO ingest_ranges (queue, name, first_number, last_number, given)
{rows queue text, name text, first_number bigint, last_number bigint, given bigint}
ON CONFLICT (queue, name) DO UPDATE SET first_number = excluded.first_number, last_number = excluded.last_number, given = excluded.given;

-- name: ingest_sessions_by_ids
-- Sessions by id.
SELECT s.id, s.owner, s.alive_until, s.lasts
FROM {each ids text AS k} JOIN ingest_sessions s ON s.id = k.value;

-- name: silent_ingest_sessions
-- Sessions that are over: nobody has heard of them for too long, or only by a clock that was ahead.
-- There are only as many as processes.
SELECT s.id, s.owner, s.alive_until, s.lasts
FROM ingest_sessions s
WHERE NOT (s.alive_until > :now AND s.alive_until <= :now + 2 * s.lasts);

-- name: put_ingest_sessions
-- Write until when sessions count as alive.
INSERT INTO ingest_sessions (id, owner, alive_until, lasts)
{rows id text, owner text, alive_until bigint, lasts bigint}
ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until;

-- name: forget_ingest_sessions
-- Sessions that are over.
DELETE FROM ingest_sessions WHERE id IN ({rows id text});

-- name: ingest_batches_by_ids
-- Batches by id.
SELECT b.id, b.collection, b.submission, b.key_hash, b.status, b.last_modified, b.message, b.jobs, b.report, b.version, b.locked_by
FROM {each ids text AS k} JOIN ingest_batches b ON b.id = k.value;

-- name: ingest_batches_by_keys
-- Which batches were submitted under these keys.
SELECT b.key_hash, b.id
FROM {each ids text AS k} JOIN ingest_batches b ON b.key_hash = k.value;

-- name: free_ingest_batches
-- Batches in a state that nobody has locked, younger than one of them, oldest first. Were they said to be in one state and in the order of their
-- ids, PostgreSQL could walk along the ids of all that are completed.
SELECT b.id, b.collection, b.submission, b.key_hash, b.status, b.last_modified, b.message, b.jobs, b.report, b.version, b.locked_by
FROM ingest_batches b
WHERE (b.status, b.id) > (:status, :after) AND b.status <= :status AND b.locked_by = ''
ORDER BY b.status, b.id
LIMIT :most;

-- name: ingest_batches_locked
-- Batches that a session has locked.
SELECT b.id, b.collection, b.submission, b.key_hash, b.status, b.last_modified, b.message, b.jobs, b.report, b.version, b.locked_by
FROM ingest_batches b
WHERE b.locked_by = :session AND b.locked_by <> '';

-- name: put_ingest_batches
-- Write batches.
INSERT INTO ingest_batches (id, collection, submission, key_hash, status, last_modified, message, jobs, report, version, locked_by)
{rows id text, collection text, submission text, key_hash text, status text, last_modified bigint, message text, jobs bigint, report text, version bigint, locked_by text}
ON CONFLICT (id) DO UPDATE SET
    status = excluded.status,
    last_modified = excluded.last_modified,
    message = excluded.message,
    jobs = excluded.jobs,
    report = excluded.report,
    version = excluded.version,
    locked_by = excluded.locked_by;

-- name: forget_ingest_batches
-- Delete batches.
DELETE FROM ingest_batches WHERE id IN ({rows id text});

-- name: ingest_jobs_by_ids
-- Ingest jobs by id.
SELECT j.id, j.batch_id, j.configuration, j.identifiers, j.status, j.side, j.last_successful_status, j.last_modified, j.retry_count, j.message, j.history, j.can_begin_again, j.keeps_priority, j.priority, j.space_needed, j.version, j.locked_by
FROM {each ids text AS k} JOIN ingest_jobs j ON j.id = k.value;

-- name: free_ingest_jobs
-- Jobs in a state that nobody has locked, in the order of their places, behind one place.
SELECT j.id, j.batch_id, j.configuration, j.identifiers, j.status, j.side, j.last_successful_status, j.last_modified, j.retry_count, j.message, j.history, j.can_begin_again, j.keeps_priority, j.priority, j.space_needed, j.version, j.locked_by
FROM ingest_jobs j
WHERE j.status = :status AND (j.priority, j.id) > (:priority, :id) AND j.locked_by = ''
ORDER BY j.priority, j.id
LIMIT :most;

-- name: ingest_jobs_locked
-- Jobs that a session has locked.
SELECT j.id, j.batch_id, j.configuration, j.identifiers, j.status, j.side, j.last_successful_status, j.last_modified, j.retry_count, j.message, j.history, j.can_begin_again, j.keeps_priority, j.priority, j.space_needed, j.version, j.locked_by
FROM ingest_jobs j
WHERE j.locked_by = :session AND j.locked_by <> '';

-- name: ingest_locks_of_session
-- Jobs and batches that a session has locked, with their states.
SELECT j.id, j.status FROM ingest_jobs j WHERE j.locked_by = :session AND j.locked_by <> ''
UNION ALL
SELECT b.id, b.status FROM ingest_batches b WHERE b.locked_by = :session AND b.locked_by <> '';

-- name: put_ingest_jobs
-- Write new jobs.
INSERT INTO ingest_jobs (id, batch_id, configuration, identifiers, status, side, last_successful_status, last_modified, retry_count, message, history, can_begin_again, keeps_priority, priority, space_needed, version, locked_by)
{rows id text, batch_id text, configuration text, identifiers text, status text, side text, last_successful_status text, last_modified bigint, retry_count bigint, message text, history text, can_begin_again bigint, keeps_priority bigint, priority bigint, space_needed bigint, version bigint, locked_by text};

-- name: advance_ingest_jobs
-- Write what moves have changed of jobs.
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
-- How many jobs of batches are in each state.
SELECT t.batch_id, t.status, t.jobs, t.bytes
FROM {each ids text AS k} JOIN ingest_tallies t ON t.batch_id = k.value;

-- name: put_ingest_tallies
-- Write how many jobs of batches are in each state.
INSERT INTO ingest_tallies (batch_id, status, jobs, bytes)
{rows batch_id text, status text, jobs bigint, bytes bigint}
ON CONFLICT (batch_id, status) DO UPDATE SET jobs = excluded.jobs, bytes = excluded.bytes;

-- name: forget_ingest_tallies
-- The counts of batches that are deleted.
DELETE FROM ingest_tallies WHERE batch_id IN ({rows id text});

-- name: all_ingest_holds
-- Everything that is held: few rows, read whole.
SELECT h.kind, h.name, h.who, h.why, h.since
FROM ingest_holds h
ORDER BY h.kind, h.name;

-- name: put_ingest_holds
-- Stop collections or the queue.
INSERT INTO ingest_holds (kind, name, who, why, since)
{rows kind text, name text, who text, why text, since bigint}
ON CONFLICT (kind, name) DO UPDATE SET who = excluded.who, why = excluded.why, since = excluded.since;

-- name: forget_ingest_holds
-- Let collections or the queue go on.
DELETE FROM ingest_holds
WHERE (kind, name) IN (SELECT kind, name FROM ({rows kind text, name text}) r);
