-- The jobs that failed last, among all that ever failed.
CREATE INDEX ingest_jobs_failed ON ingest_jobs (last_modified, id) WHERE status = 'failed';
