-- Rows whose times are ahead of a limit. Each statement looks through whole tables: an administrator
-- runs it, once after a clock was wrong.

-- name: future_events
-- The times of events that are ahead, and when the first of each was received.
SELECT event_time, kind, event_type, MIN(received_at), COUNT(*)
FROM events WHERE kind IN ('RUN', 'JOB', 'DATASET') AND event_time > :limit
GROUP BY event_time, kind, event_type;

-- name: mend_events
-- Give the events of one kind and time another time.
UPDATE events SET event_time = :at WHERE kind = :kind AND event_time = :was;

-- name: forget_event_counts
-- Forget hours that count nothing.
DELETE FROM event_counts WHERE hour >= :hour AND total = 0;

-- name: future_runs
-- Runs with a time that is ahead.
SELECT id FROM runs
WHERE updated_at > :limit OR created_at > :limit OR started_at > :limit OR ended_at > :limit;

-- name: future_datasets
-- Datasets with a time that is ahead; a stamp is eight times its moment.
SELECT id FROM datasets
WHERE updated_at > :limit OR created_at > :limit OR published_at > :limit OR hidden_at > :limit
   OR description_stamp / 8 > :limit;

-- name: future_versions
-- Dataset versions with a time that is ahead.
SELECT id, dataset_id FROM dataset_versions WHERE created_at > :limit OR published_at > :limit;

-- name: future_jobs
-- Jobs with a time that is ahead.
SELECT id FROM jobs
WHERE updated_at > :limit OR created_at > :limit OR version_at > :limit OR latest_run_at > :limit
   OR hidden_at > :limit OR type_stamp / 8 > :limit OR description_stamp / 8 > :limit
   OR location_stamp / 8 > :limit OR parent_stamp / 8 > :limit;

-- name: future_job_versions
-- Job versions with a time that is ahead.
SELECT id FROM job_versions WHERE created_at > :limit OR declared_at > :limit;

-- name: future_edges
-- Edges whose first sight is ahead.
SELECT job_id, role, dataset_id, current, first_at FROM job_edges WHERE first_at > :limit;

-- name: future_namespaces
-- Namespaces with a time that is ahead.
SELECT name FROM namespaces
WHERE created_at > :limit OR updated_at > :limit OR hidden_at > :limit;

-- name: future_sources
-- Sources with a time that is ahead.
SELECT name FROM sources WHERE created_at > :limit OR updated_at > :limit;
