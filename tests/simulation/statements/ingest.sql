-- Whole tables of ingest, for tests that compare everything.

-- name: every_minted_ark
-- All ARKs that were minted.
SELECT key, shoulder, number, ark, at FROM minted_arks;

-- name: every_local_id
-- All names that owners have for objects.
SELECT namespace, owner, local_id, ark FROM local_ids;

-- name: every_ark_writer
-- Everybody who may write an object just now.
SELECT ark, key, job_id FROM ark_writers;

-- name: every_stored_object
-- All stored versions of objects.
SELECT ark, version, key, namespace, collection, batch_id, job_id, location, digest, files, bytes, title, run_id, at FROM stored_objects;
