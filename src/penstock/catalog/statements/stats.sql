-- name: count_events_per_hour
-- Count the events of each type in each hour of a time range.
SELECT hour, event_type, total FROM event_counts WHERE hour >= :after AND hour < :before

-- name: count_datasets_created
-- Count the visible datasets created in each slot of time since a moment.
SELECT created_at / :slot, COUNT(*) FROM datasets
WHERE created_at >= :after AND hidden = 0 GROUP BY 1

-- name: count_jobs_created
-- Count the visible jobs created in each slot of time since a moment.
SELECT created_at / :slot, COUNT(*) FROM jobs
WHERE created_at >= :after AND hidden = 0 GROUP BY 1

-- name: count_sources_created
-- Count the sources created in each slot of time since a moment.
SELECT created_at / :slot, COUNT(*) FROM sources WHERE created_at >= :after GROUP BY 1

-- name: count_sources
-- Count the sources; they are few.
SELECT '', COUNT(*) FROM sources
