-- Rows with times after a limit. Each statement reads whole tables: an administrator runs them
-- once, after a clock was wrong.

-- name: future_events
-- Find the times of events after the limit, and when the first event with each time was
-- received.
SELECT event_time, kind, event_type, MIN(received_at), COUNT(*)
FROM events WHERE kind IN ('RUN', 'JOB', 'DATASET') AND event_time > :limit
GROUP BY event_time, kind, event_type;

-- name: mend_events
-- Change the time of the events with one kind and time.
UPDATE events SET event_time = :at WHERE kind = :kind AND event_time = :was;

-- name: forget_event_counts
-- Delete hours without events.
DELETE FROM event_counts WHERE hour >= :hour AND total = 0;

-- name: future_runs
-- Find runs with a time after the limit.
SELECT id FROM runs
WHERE updated_at > :limit OR created_at > :limit OR started_at > :limit OR ended_at > :limit;

-- name: future_datasets
-- Find datasets with a time after the limit; a stamp is eight times its moment.
SELECT id FROM datasets
WHERE updated_at > :limit OR created_at > :limit OR published_at > :limit OR hidden_at > :limit
   OR description_stamp / 8 > :limit;

-- name: future_versions
-- Find dataset versions with a time after the limit.
SELECT id, dataset_id FROM dataset_versions WHERE created_at > :limit OR published_at > :limit;

-- name: future_jobs
-- Find jobs with a time after the limit.
SELECT id FROM jobs
WHERE updated_at > :limit OR created_at > :limit OR version_at > :limit OR latest_run_at > :limit
   OR hidden_at > :limit OR type_stamp / 8 > :limit OR description_stamp / 8 > :limit
   OR location_stamp / 8 > :limit OR parent_stamp / 8 > :limit;

-- name: future_job_versions
-- Find job versions with a time after the limit.
SELECT id FROM job_versions WHERE created_at > :limit OR declared_at > :limit;

-- name: future_edges
-- Find edges whose first time is after the limit.
SELECT {columns job_edges} FROM job_edges WHERE first_at > :limit;

-- name: future_namespaces
-- Find namespaces with a time after the limit.
SELECT name FROM namespaces
WHERE created_at > :limit OR updated_at > :limit OR hidden_at > :limit;

-- name: future_sources
-- Find sources with a time after the limit.
SELECT name FROM sources WHERE created_at > :limit OR updated_at > :limit;
