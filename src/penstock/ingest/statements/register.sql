-- Collections, ARKs, local ids and stored objects.

-- name: collection
-- Read the profile of one collection.
SELECT c.profile FROM collections c WHERE c.name = :name;

-- name: all_collections
-- Read the profiles of all collections.
SELECT c.profile FROM collections c ORDER BY c.name;

-- name: put_collection
-- Write the profile of a collection.
INSERT INTO collections (name, profile, created_at, updated_at)
VALUES (:name, :profile, :now, :now)
ON CONFLICT (name) DO UPDATE SET profile = excluded.profile, updated_at = excluded.updated_at;

-- name: forget_collection
-- Delete a collection.
DELETE FROM collections WHERE name = :name;

-- name: minted_arks_by_keys
-- Find the ARKs that were minted for deposits.
SELECT {columns minted_arks m}
FROM {each ids text AS k} JOIN minted_arks m ON m.key = k.value;

-- name: put_minted_arks
-- Write minted ARKs; an ARK that is set stays.
{insert minted_arks}
ON CONFLICT (key) DO UPDATE SET ark = COALESCE(minted_arks.ark, excluded.ark);

-- name: arks_by_arks
-- Find the namespaces of these ARKs, if they are in use.
SELECT {columns arks a}
FROM {each ids text AS k} JOIN arks a ON a.ark = k.value;

-- name: put_arks
-- Write the namespaces of ARKs.
{upsert arks};

-- name: local_ids_of_owner
-- Find the ARKs for these local ids of an owner.
SELECT {columns local_ids l}
FROM local_ids l
WHERE l.namespace = :namespace AND l.owner = :owner AND l.local_id {in names text};

-- name: put_local_ids
-- Write the ARKs of local ids.
{insert local_ids}
ON CONFLICT (namespace, owner, local_id) DO NOTHING;

-- name: ark_writers_by_arks
-- Find the deposits that may write a version of these objects now.
SELECT {columns ark_writers w}
FROM {each ids text AS k} JOIN ark_writers w ON w.ark = k.value;

-- name: ark_writers_from
-- Read a page of the deposits that may write objects now, by ARK.
SELECT {columns ark_writers w} FROM ark_writers w WHERE w.ark > :after ORDER BY w.ark LIMIT :most;

-- name: put_ark_writers
-- Write the deposits that may write a version of objects.
{upsert ark_writers};

-- name: forget_ark_writers
-- End the right to write these objects.
DELETE FROM ark_writers WHERE ark IN ({rows ark text});

-- name: stored_objects_by_keys
-- Find the objects that these deposits have stored.
SELECT {columns stored_objects o}
FROM {each ids text AS k} JOIN stored_objects o ON o.key = k.value;

-- name: put_stored_objects
-- Write stored objects.
{insert stored_objects};

-- name: versions_of_object
-- List the stored versions of an object, newest first.
SELECT {columns stored_objects o}
FROM stored_objects o
WHERE o.ark = :ark
ORDER BY o.version DESC;

-- name: objects_stored_from
-- Read a page of the stored objects, each with the collection of its newest version.
SELECT o.ark, o.collection
FROM stored_objects o
WHERE o.ark > :after
  AND NOT EXISTS (SELECT 1 FROM stored_objects n WHERE n.ark = o.ark AND n.version > o.version)
ORDER BY o.ark
LIMIT :most;

-- name: object_sizes_by_arks
-- Find the size in bytes of each version of these objects, by object and version.
SELECT o.ark, o.version, o.collection, o.bytes
FROM {each ids text AS k} JOIN stored_objects o ON o.ark = k.value
ORDER BY o.ark, o.version;

-- name: objects_of_collection
-- List the stored objects of a collection, newest first.
SELECT {columns stored_objects o}
FROM stored_objects o
WHERE o.collection = :collection AND o.at < :before
ORDER BY o.at DESC
LIMIT :most;

-- name: storage_of_collection
-- Find the storage of a collection, if it has stored objects: they are all in one storage.
SELECT a.storage
FROM stored_objects o JOIN arks a ON a.ark = o.ark
WHERE o.collection = :collection
ORDER BY o.at DESC
LIMIT 1;

-- name: upload
-- Find the submission and the batch of an upload.
SELECT u.holder, u.batch_id FROM uploads u WHERE u.url = :url;

-- name: put_upload
-- Write the submission of an upload, and since when it has it.
INSERT INTO uploads (url, holder, at) VALUES (:url, :holder, :now)
ON CONFLICT (url) DO UPDATE SET holder = excluded.holder, at = excluded.at;

-- name: spend_upload
-- Write the batch of an upload.
UPDATE uploads SET batch_id = :batch_id WHERE url = :url;

-- name: forget_upload
-- Delete an upload.
DELETE FROM uploads WHERE url = :url;

-- name: stale_uploads
-- Find uploads without a known batch that were last used before a time.
SELECT u.url, u.holder FROM uploads u WHERE u.batch_id = '' AND u.at < :before ORDER BY u.at LIMIT :most;

-- name: add_ingest_letter
-- Store a letter until it is delivered; a stored letter stays as it is.
INSERT INTO ingest_letters (message_id, batch_id, recipients, subject, body, tries, since, next_at, trouble)
VALUES (:message_id, :batch_id, :recipients, :subject, :body, 0, :now, :next_at, '')
ON CONFLICT (message_id) DO NOTHING;

-- name: due_ingest_letters
-- List letters to send again, the longest waiting first.
SELECT {columns ingest_letters l}
FROM ingest_letters l
WHERE l.next_at <= :now
ORDER BY l.next_at
LIMIT :most;

-- name: ingest_letter_turn
-- Find when a letter is to be sent again.
SELECT l.next_at FROM ingest_letters l WHERE l.message_id = :message_id;

-- name: take_ingest_letter
-- Reserve a letter: no other worker sends it until then.
UPDATE ingest_letters SET next_at = :next_at WHERE message_id = :message_id;

-- name: postpone_ingest_letter
-- Write the recipients that a letter has not reached, why, and when to send it again.
UPDATE ingest_letters
SET recipients = :recipients, tries = tries + 1, next_at = :next_at, trouble = :trouble
WHERE message_id = :message_id;

-- name: forget_ingest_letter
-- Delete a letter that is delivered, or abandoned.
DELETE FROM ingest_letters WHERE message_id = :message_id;

-- name: put_ingest_progress
-- Write the progress of a download.
INSERT INTO ingest_progress (job_id, bytes, total, at) VALUES (:job_id, :bytes, :total, :now)
ON CONFLICT (job_id) DO UPDATE SET bytes = excluded.bytes, total = excluded.total, at = excluded.at;

-- name: ingest_progress_by_jobs
-- Find the progress of the downloads of these jobs.
SELECT {columns ingest_progress p}
FROM {each ids text AS k} JOIN ingest_progress p ON p.job_id = k.value;

-- name: forget_ingest_progress
-- Delete the progress of a download that has ended.
DELETE FROM ingest_progress WHERE job_id = :job_id;

-- name: forget_old_ingest_progress
-- Delete the progress that killed workers have left.
DELETE FROM ingest_progress WHERE at < :before;
