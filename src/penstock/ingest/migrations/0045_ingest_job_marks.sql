-- can_begin_again: an ingest job failed before any stage succeeded, but not for its payload.
-- keeps_priority: a person set its priority, and no stage changes it.
ALTER TABLE ingest_jobs ADD COLUMN can_begin_again BIGINT NOT NULL DEFAULT 0 CHECK (can_begin_again IN (0, 1));
ALTER TABLE ingest_jobs ADD COLUMN keeps_priority BIGINT NOT NULL DEFAULT 0 CHECK (keeps_priority IN (0, 1));
