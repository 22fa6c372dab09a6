-- For how long a session counts as alive after each beat. Those of before are of processes that were
-- stopped for this step: they are over.
ALTER TABLE ingest_sessions ADD COLUMN lasts BIGINT NOT NULL DEFAULT 0;

-- The last number that such a queue is known to have given.
ALTER TABLE ingest_ranges ADD COLUMN given BIGINT NOT NULL DEFAULT 0;

-- Names of objects that were stored when hyphens in an ARK still counted; no others come.
CREATE INDEX arks_with_hyphens ON arks (replace(ark, '-', '')) WHERE ark <> replace(ark, '-', '');
