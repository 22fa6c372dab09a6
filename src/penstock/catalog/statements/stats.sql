-- name: count_events_per_hour
-- How many events of each type there were in each hour of a time range.
SELECT hour, event_type, total FROM event_counts WHERE hour >= :after AND hour < :before

-- name: count_datasets_created
-- How many of the visible datasets were created in each slot of time since a moment.
SELECT created_at / :slot, COUNT(*) FROM datasets
WHERE created_at >= :after AND hidden = 0 GROUP BY 1

-- name: count_jobs_created
-- How many of the visible jobs were created in each slot of time since a moment.
SELECT created_at / :slot, COUNT(*) FROM jobs
WHERE created_at >= :after AND hidden = 0 GROUP BY 1

-- name: count_sources_created
-- How many sources were created in each slot of time since a moment.
SELECT created_at / :slot, COUNT(*) FROM sources WHERE created_at >= :after GROUP BY 1

-- name: count_sources
-- How many sources there are; they are few.
SELECT '', COUNT(*) FROM sources
