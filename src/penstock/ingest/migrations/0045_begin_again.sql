-- can_begin_again: an ingest job failed before any stage succeeded, but not for its payload.
ALTER TABLE ingest_jobs ADD COLUMN can_begin_again BIGINT NOT NULL DEFAULT 0 CHECK (can_begin_again IN (0, 1));
