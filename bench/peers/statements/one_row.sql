-- name: change_one_row
-- Change one ingest job, and nothing else.
UPDATE ingest_jobs SET version = version + 1 WHERE id = :id
