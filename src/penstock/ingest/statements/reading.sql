-- Lists and single reads of ingest.
--
-- Lists follow one index, and say between which places of it they are, and its whole order. Were
-- `batch_id = :batch_id` said, PostgreSQL could walk along the ids of all batches instead.

-- name: ingest_batch
-- One batch.
SELECT b.id, b.collection, b.submission, b.key_hash, b.status, b.last_modified, b.message, b.jobs, b.report, b.version, b.locked_by
FROM ingest_batches b
WHERE b.id = :id;

-- name: open_batch_of_collection
-- A batch of a collection that is not completed, if there is one: by the names of the states, it is first or last.
SELECT b.id, b.collection, b.submission, b.key_hash, b.status, b.last_modified, b.message, b.jobs, b.report, b.version, b.locked_by
FROM (
    SELECT page.* FROM (
        SELECT a.* FROM ingest_batches a
        WHERE a.collection >= :collection AND a.collection <= :collection
        ORDER BY a.collection, a.status, a.id
        LIMIT 1
    ) page
    UNION ALL
    SELECT page.* FROM (
        SELECT a.* FROM ingest_batches a
        WHERE a.collection >= :collection AND a.collection <= :collection
        ORDER BY a.collection DESC, a.status DESC, a.id DESC
        LIMIT 1
    ) page
) b
WHERE b.status <> 'completed'
LIMIT 1;

-- name: ingest_job
-- One ingest job.
SELECT j.id, j.batch_id, j.configuration, j.identifiers, j.status, j.side, j.last_successful_status, j.last_modified, j.retry_count, j.message, j.history, j.can_begin_again, j.keeps_priority, j.priority, j.space_needed, j.version, j.locked_by
FROM ingest_jobs j
WHERE j.id = :id;

-- name: list_ingest_batches
-- Batches, newest first and without their reports, older than one of them.
SELECT b.id, b.collection, b.submission, b.key_hash, b.status, b.last_modified, b.message, b.jobs, CAST(NULL AS TEXT), b.version, b.locked_by
FROM ingest_batches b
WHERE b.id < :before
ORDER BY b.id DESC
LIMIT :most;

-- name: list_ingest_batches_by_status
-- Batches in a state, newest first and without their reports, older than one of them.
SELECT b.id, b.collection, b.submission, b.key_hash, b.status, b.last_modified, b.message, b.jobs, CAST(NULL AS TEXT), b.version, b.locked_by
FROM ingest_batches b
WHERE (b.status, b.id) < (:status, :before) AND b.status >= :status
ORDER BY b.status DESC, b.id DESC
LIMIT :most;

-- name: list_ingest_batches_of_collection
-- Batches of a collection, newest first and without their reports, older than one of them; in one state, if it is named.
SELECT b.id, b.collection, b.submission, b.key_hash, b.status, b.last_modified, b.message, b.jobs, CAST(NULL AS TEXT), b.version, b.locked_by
FROM (
    SELECT page.* FROM (
        SELECT a.* FROM ingest_batches a
        WHERE (a.collection, a.id) < (:collection, :before) AND a.collection >= :collection
          AND CAST(:status AS TEXT) IS NULL
        ORDER BY a.collection DESC, a.id DESC
        LIMIT :most
    ) page
    UNION ALL
    SELECT page.* FROM (
        SELECT a.* FROM ingest_batches a
        WHERE (a.collection, a.status, a.id) < (:collection, :status, :before)
          AND (a.collection, a.status) >= (:collection, :status)
          AND CAST(:status AS TEXT) IS NOT NULL
        ORDER BY a.collection DESC, a.status DESC, a.id DESC
        LIMIT :most
    ) page
) b
ORDER BY b.id DESC;

-- name: list_ingest_jobs
-- Jobs of a batch, behind one of them.
SELECT j.id, j.batch_id, j.configuration, j.identifiers, j.status, j.side, j.last_successful_status, j.last_modified, j.retry_count, j.message, j.history, j.can_begin_again, j.keeps_priority, j.priority, j.space_needed, j.version, j.locked_by
FROM ingest_jobs j
WHERE (j.batch_id, j.id) > (:batch_id, :after) AND j.batch_id <= :batch_id
ORDER BY j.batch_id, j.id
LIMIT :most;

-- name: list_ingest_jobs_by_status
-- Jobs of a batch in one state, behind one of them.
SELECT j.id, j.batch_id, j.configuration, j.identifiers, j.status, j.side, j.last_successful_status, j.last_modified, j.retry_count, j.message, j.history, j.can_begin_again, j.keeps_priority, j.priority, j.space_needed, j.version, j.locked_by
FROM ingest_jobs j
WHERE (j.batch_id, j.status, j.id) > (:batch_id, :status, :after)
  AND (j.batch_id, j.status) <= (:batch_id, :status)
ORDER BY j.batch_id, j.status, j.id
LIMIT :most;

-- name: waiting_ingest_jobs
-- Jobs of all batches in a state, in the order of their places, behind one place.
SELECT j.id, j.batch_id, j.configuration, j.identifiers, j.status, j.side, j.last_successful_status, j.last_modified, j.retry_count, j.message, j.history, j.can_begin_again, j.keeps_priority, j.priority, j.space_needed, j.version, j.locked_by
FROM ingest_jobs j
WHERE j.status = :status AND (j.priority, j.id) > (:priority, :id)
ORDER BY j.priority, j.id
LIMIT :most;

-- name: newest_failed_ingest_jobs
-- Failed jobs of all batches, the last that failed first.
SELECT j.id, j.batch_id, j.configuration, j.identifiers, j.status, j.side, j.last_successful_status, j.last_modified, j.retry_count, j.message, j.history, j.can_begin_again, j.keeps_priority, j.priority, j.space_needed, j.version, j.locked_by
FROM ingest_jobs j
WHERE j.status = 'failed'
ORDER BY j.last_modified DESC, j.id DESC
LIMIT :most;

-- name: ingest_tally
-- How many jobs of a batch, or of all, are in each state.
SELECT t.status, t.jobs, t.bytes
FROM ingest_tallies t
WHERE t.batch_id = :batch_id AND t.jobs > 0;

-- name: ingest_jobs_without_batch
-- Jobs whose batch is not there.
SELECT j.id FROM ingest_jobs j
WHERE NOT EXISTS (SELECT 1 FROM ingest_batches b WHERE b.id = j.batch_id);

-- name: ingest_locks_without_session
-- Locks whose session is not there.
SELECT j.id FROM ingest_jobs j
WHERE j.locked_by <> '' AND NOT EXISTS (SELECT 1 FROM ingest_sessions s WHERE s.id = j.locked_by)
UNION ALL
SELECT b.id FROM ingest_batches b
WHERE b.locked_by <> '' AND NOT EXISTS (SELECT 1 FROM ingest_sessions s WHERE s.id = b.locked_by);

-- name: ingest_wrong_tallies
-- Batches of which the counted jobs are not the jobs that are there.
SELECT c.batch_id, c.status, c.jobs, c.bytes
FROM (SELECT j.batch_id, j.status, COUNT(*) AS jobs, CAST(SUM(j.space_needed) AS BIGINT) AS bytes
      FROM ingest_jobs j GROUP BY j.batch_id, j.status) c
LEFT JOIN ingest_tallies t ON t.batch_id = c.batch_id AND t.status = c.status
WHERE t.jobs IS NULL OR t.jobs <> c.jobs OR t.bytes <> c.bytes
UNION ALL
SELECT t.batch_id, t.status, 0, 0
FROM ingest_tallies t
WHERE t.jobs > 0 AND t.batch_id <> ''
  AND NOT EXISTS (SELECT 1 FROM ingest_jobs j WHERE j.batch_id = t.batch_id AND j.status = t.status);

-- name: ingest_wrong_totals
-- States of which the counted jobs of all batches are not the jobs that are there.
SELECT '', c.status, c.jobs, c.bytes
FROM (SELECT j.status, COUNT(*) AS jobs, CAST(SUM(j.space_needed) AS BIGINT) AS bytes
      FROM ingest_jobs j GROUP BY j.status) c
LEFT JOIN ingest_tallies t ON t.batch_id = '' AND t.status = c.status
WHERE t.jobs IS NULL OR t.jobs <> c.jobs OR t.bytes <> c.bytes
UNION ALL
SELECT '', t.status, 0, 0
FROM ingest_tallies t
WHERE t.jobs > 0 AND t.batch_id = '' AND NOT EXISTS (SELECT 1 FROM ingest_jobs j WHERE j.status = t.status);

-- name: ingest_stuck_batches
-- Batches that are processing although no job of theirs is.
SELECT b.id FROM ingest_batches b
WHERE b.status = 'processing'
  AND NOT EXISTS (SELECT 1 FROM ingest_jobs j WHERE j.batch_id = b.id AND j.side = 'batch-processing');
