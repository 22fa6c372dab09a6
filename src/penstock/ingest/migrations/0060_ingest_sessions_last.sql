-- For how long a session counts as alive after each beat. Those of before are of processes that were
-- stopped for this step: they are over.
ALTER TABLE ingest_sessions ADD COLUMN lasts BIGINT NOT NULL DEFAULT 0;
