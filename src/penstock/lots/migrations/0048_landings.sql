-- Datasets whose objects arrive, and what was met where they do: why it could not be looked at, and
-- since when (empty: it could); how many objects there cannot be taken, one of them, and why not.
CREATE TABLE lot_landings (
    dataset_id UUID PRIMARY KEY,
    error      TEXT NOT NULL,
    failed_at  BIGINT NOT NULL,
    untaken    BIGINT NOT NULL,
    example    TEXT NOT NULL,
    reason     TEXT NOT NULL
);
INSERT INTO lot_landings (dataset_id, error, failed_at, untaken, example, reason)
SELECT a.dataset_id, '', 0, 0, '', '' FROM arrivals a;
