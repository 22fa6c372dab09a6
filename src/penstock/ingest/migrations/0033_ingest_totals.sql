-- How many jobs of all batches together are in each state stands under a batch without a name, so
-- that nobody has to add up every batch there ever was.
INSERT INTO ingest_tallies (batch_id, status, jobs, bytes)
SELECT '', t.status, CAST(SUM(t.jobs) AS BIGINT), CAST(SUM(t.bytes) AS BIGINT)
FROM ingest_tallies t GROUP BY t.status;
DROP INDEX ingest_tallies_by_status;

-- A collection's few batches that are open or held are found without reading all that it completed.
CREATE INDEX ingest_batches_of_collection_by_status ON ingest_batches (collection, status, id);
