-- batch_id: the batch that an upload was submitted as; empty until it is known that it was made.
ALTER TABLE uploads ADD COLUMN batch_id TEXT NOT NULL DEFAULT '';
DROP INDEX uploads_unclaimed;
CREATE INDEX uploads_unspent ON uploads (at) WHERE batch_id = '';
