-- Which numbers a queue outside the database may give to batches and jobs: nobody else gives these.
CREATE TABLE ingest_ranges (
    queue        TEXT NOT NULL,
    name         TEXT NOT NULL,
    first_number BIGINT NOT NULL,
    last_number  BIGINT NOT NULL CHECK (last_number >= first_number),
    PRIMARY KEY (queue, name)
) WITHOUT ROWID;

-- Numbers that such a queue has given before: as far as they left a trace here.
INSERT INTO ingest_counters (name, value)
SELECT 'batches', COALESCE(MAX(s.number), 0)
FROM (
    SELECT CAST(substr(b.batch_id, 4) AS BIGINT) AS number FROM batch_lots b
    UNION ALL
    SELECT CAST(substr(o.batch_id, 4) AS BIGINT) FROM stored_objects o
) s
WHERE true
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE excluded.value > ingest_counters.value;
INSERT INTO ingest_counters (name, value)
SELECT 'jobs', COALESCE(MAX(s.number), 0)
FROM (
    SELECT CAST(substr(o.job_id, 4) AS BIGINT) AS number FROM stored_objects o
    UNION ALL
    SELECT CAST(substr(w.job_id, 4) AS BIGINT) FROM ark_writers w
) s
WHERE true
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE excluded.value > ingest_counters.value;
