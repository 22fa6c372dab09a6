-- Lists and single reads of ingest. A list follows one index: its conditions are a range of that
-- index, and it names the whole order. With `batch_id = :batch_id`, PostgreSQL might walk along
-- the ids of all batches instead.

-- name: ingest_batch
-- Read one batch.
SELECT {columns ingest_batches b}
FROM ingest_batches b
WHERE b.id = :id;

-- name: open_batch_of_collection
-- Find a batch of a collection that is not completed. By the names of the states, it is the
-- first or the last one.
SELECT {columns ingest_batches b}
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
-- Read one ingest job.
SELECT {columns ingest_jobs j}
FROM ingest_jobs j
WHERE j.id = :id;

-- name: list_ingest_batches
-- List batches older than one of them, newest first and without their reports.
SELECT b.id, b.collection, b.submission, b.key_hash, b.status, b.last_modified, b.message, b.jobs, CAST(NULL AS TEXT), b.version, b.locked_by
FROM ingest_batches b
WHERE b.id < :before
ORDER BY b.id DESC
LIMIT :most;

-- name: list_ingest_batches_by_status
-- List batches in a state, older than one of them, newest first and without their reports.
SELECT b.id, b.collection, b.submission, b.key_hash, b.status, b.last_modified, b.message, b.jobs, CAST(NULL AS TEXT), b.version, b.locked_by
FROM ingest_batches b
WHERE (b.status, b.id) < (:status, :before) AND b.status >= :status
ORDER BY b.status DESC, b.id DESC
LIMIT :most;

-- name: list_ingest_batches_of_collection
-- List batches of a collection, older than one of them, newest first and without their reports;
-- in one state, if it is given.
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
-- List the jobs of a batch, after one of them.
SELECT {columns ingest_jobs j}
FROM ingest_jobs j
WHERE (j.batch_id, j.id) > (:batch_id, :after) AND j.batch_id <= :batch_id
ORDER BY j.batch_id, j.id
LIMIT :most;

-- name: list_ingest_jobs_by_status
-- List the jobs of a batch in one state, after one of them.
SELECT {columns ingest_jobs j}
FROM ingest_jobs j
WHERE (j.batch_id, j.status, j.id) > (:batch_id, :status, :after)
  AND (j.batch_id, j.status) <= (:batch_id, :status)
ORDER BY j.batch_id, j.status, j.id
LIMIT :most;

-- name: waiting_ingest_jobs
-- List the jobs of all batches in a state, in the order of the queue, after one position.
SELECT {columns ingest_jobs j}
FROM ingest_jobs j
WHERE j.status = :status AND (j.priority, j.id) > (:priority, :id)
ORDER BY j.priority, j.id
LIMIT :most;

-- name: newest_failed_ingest_jobs
-- List the failed jobs of all batches, the last failure first.
SELECT {columns ingest_jobs j}
FROM ingest_jobs j
WHERE j.status = 'failed'
ORDER BY j.last_modified DESC, j.id DESC
LIMIT :most;

-- name: ingest_tally
-- Count the jobs of a batch, or of all batches, in each state.
SELECT t.status, t.jobs, t.bytes
FROM ingest_tallies t
WHERE t.batch_id = :batch_id AND t.jobs > 0;

-- name: ingest_jobs_without_batch
-- Find jobs whose batch does not exist.
SELECT j.id FROM ingest_jobs j
WHERE NOT EXISTS (SELECT 1 FROM ingest_batches b WHERE b.id = j.batch_id);

-- name: ingest_locks_without_session
-- Find locks whose session does not exist.
SELECT j.id FROM ingest_jobs j
WHERE j.locked_by <> '' AND NOT EXISTS (SELECT 1 FROM ingest_sessions s WHERE s.id = j.locked_by)
UNION ALL
SELECT b.id FROM ingest_batches b
WHERE b.locked_by <> '' AND NOT EXISTS (SELECT 1 FROM ingest_sessions s WHERE s.id = b.locked_by);

-- name: ingest_wrong_tallies
-- Find batches whose counts differ from their jobs.
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
-- Find states whose totals over all batches differ from the jobs.
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
-- Find batches that are processing without a processing job.
SELECT b.id FROM ingest_batches b
WHERE b.status = 'processing'
  AND NOT EXISTS (SELECT 1 FROM ingest_jobs j WHERE j.batch_id = b.id AND j.side = 'batch-processing');
