-- Collections, ARKs, local ids and what is stored.

-- name: collection
-- The profile of one collection.
SELECT c.profile FROM collections c WHERE c.name = :name;

-- name: all_collections
-- The profiles of all collections.
SELECT c.profile FROM collections c ORDER BY c.name;

-- name: put_collection
-- Write the profile of a collection.
INSERT INTO collections (name, profile, created_at, updated_at)
VALUES (:name, :profile, :now, :now)
ON CONFLICT (name) DO UPDATE SET profile = excluded.profile, updated_at = excluded.updated_at;

-- name: change_collection
-- Write the profile of a collection that is there, which stays as new as it was.
UPDATE collections SET profile = :profile WHERE name = :name;

-- name: forget_collection
-- Delete a collection.
DELETE FROM collections WHERE name = :name;

-- name: minted_arks_by_keys
-- What was minted for deposits.
SELECT m.key, m.shoulder, m.number, m.ark, m.at
FROM {each ids text AS k} JOIN minted_arks m ON m.key = k.value;

-- name: put_minted_arks
-- Write what was minted; an ARK that is there stays.
INSERT INTO minted_arks (key, shoulder, number, ark, at)
{rows key text, shoulder text, number bigint, ark text, at bigint}
ON CONFLICT (key) DO UPDATE SET ark = COALESCE(minted_arks.ark, excluded.ark);

-- name: arks_by_arks
-- Whose these ARKs are, of those that are in use.
SELECT a.ark, a.namespace, a.storage
FROM {each ids text AS k} JOIN arks a ON a.ark = k.value;

-- name: arks_with_hyphens
-- Under which names with hyphens, of before they meant nothing, objects are stored that these name.
SELECT replace(a.ark, '-', ''), MIN(a.ark)
FROM arks a
WHERE a.ark <> replace(a.ark, '-', '') AND replace(a.ark, '-', '') {in ids text}
GROUP BY replace(a.ark, '-', '');

-- name: put_arks
-- Write whose ARKs are.
INSERT INTO arks (ark, namespace, storage)
{rows ark text, namespace text, storage text}
ON CONFLICT (ark) DO UPDATE SET namespace = excluded.namespace, storage = excluded.storage;

-- name: local_ids_of_owner
-- Which ARKs these names of an owner stand for.
SELECT l.namespace, l.owner, l.local_id, l.ark
FROM local_ids l
WHERE l.namespace = :namespace AND l.owner = :owner AND l.local_id {in names text};

-- name: put_local_ids
-- Write which ARKs local ids stand for.
INSERT INTO local_ids (namespace, owner, local_id, ark)
{rows namespace text, owner text, local_id text, ark text}
ON CONFLICT (namespace, owner, local_id) DO NOTHING;

-- name: ark_writers_by_arks
-- Who may write a version of these objects now.
SELECT w.ark, w.key, w.job_id
FROM {each ids text AS k} JOIN ark_writers w ON w.ark = k.value;

-- name: ark_writers_from
-- A page of who may write objects now, by ARK.
SELECT w.ark, w.key, w.job_id FROM ark_writers w WHERE w.ark > :after ORDER BY w.ark LIMIT :most;

-- name: put_ark_writers
-- Write who may write a version of objects.
INSERT INTO ark_writers (ark, key, job_id)
{rows ark text, key text, job_id text}
ON CONFLICT (ark) DO UPDATE SET key = excluded.key, job_id = excluded.job_id;

-- name: forget_ark_writers
-- Nobody writes these objects any more.
DELETE FROM ark_writers WHERE ark IN ({rows ark text});

-- name: stored_objects_by_keys
-- What these deposits have stored.
SELECT o.ark, o.version, o.key, o.namespace, o.collection, o.batch_id, o.job_id, o.location, o.digest, o.files, o.bytes, o.title, o.run_id, o.at
FROM {each ids text AS k} JOIN stored_objects o ON o.key = k.value;

-- name: put_stored_objects
-- Write what deposits have stored.
INSERT INTO stored_objects (ark, version, key, namespace, collection, batch_id, job_id, location, digest, files, bytes, title, run_id, at)
{rows ark text, version bigint, key text, namespace text, collection text, batch_id text, job_id text, location text, digest text, files bigint, bytes bigint, title text, run_id uuid, at bigint};

-- name: versions_of_object
-- Every stored version of an object, newest first.
SELECT o.ark, o.version, o.key, o.namespace, o.collection, o.batch_id, o.job_id, o.location, o.digest, o.files, o.bytes, o.title, o.run_id, o.at
FROM stored_objects o
WHERE o.ark = :ark
ORDER BY o.version DESC;

-- name: objects_stored_from
-- A page of the objects that are stored, each with its newest version's collection.
SELECT o.ark, o.collection
FROM stored_objects o
WHERE o.ark > :after
  AND NOT EXISTS (SELECT 1 FROM stored_objects n WHERE n.ark = o.ark AND n.version > o.version)
ORDER BY o.ark
LIMIT :most;

-- name: object_sizes_by_arks
-- How many bytes each version of these objects has, by object and version.
SELECT o.ark, o.version, o.collection, o.bytes
FROM {each ids text AS k} JOIN stored_objects o ON o.ark = k.value
ORDER BY o.ark, o.version;

-- name: objects_of_collection
-- What a collection has stored, newest first.
SELECT o.ark, o.version, o.key, o.namespace, o.collection, o.batch_id, o.job_id, o.location, o.digest, o.files, o.bytes, o.title, o.run_id, o.at
FROM stored_objects o
WHERE o.collection = :collection AND o.at < :before
ORDER BY o.at DESC
LIMIT :most;

-- name: storage_of_collection
-- Where a collection has stored its objects, if it has any: they are all in one storage.
SELECT a.storage
FROM stored_objects o JOIN arks a ON a.ark = o.ark
WHERE o.collection = :collection
ORDER BY o.at DESC
LIMIT 1;

-- name: upload
-- Which submission has an upload, and as which batch.
SELECT u.holder, u.batch_id FROM uploads u WHERE u.url = :url;

-- name: put_upload
-- Write which submission has an upload, and since when.
INSERT INTO uploads (url, holder, at) VALUES (:url, :holder, :now)
ON CONFLICT (url) DO UPDATE SET holder = excluded.holder, at = excluded.at;

-- name: spend_upload
-- Write which batch an upload was submitted as.
UPDATE uploads SET batch_id = :batch_id WHERE url = :url;

-- name: forget_upload
-- Delete an upload.
DELETE FROM uploads WHERE url = :url;

-- name: stale_uploads
-- Uploads that are no batch's, as far as is known, and were touched last before a time.
SELECT u.url, u.holder FROM uploads u WHERE u.batch_id = '' AND u.at < :before ORDER BY u.at LIMIT :most;

-- name: add_ingest_letter
-- Keep a letter until it is delivered; one that is kept already stays as it is.
INSERT INTO ingest_letters (message_id, batch_id, recipients, subject, body, tries, since, next_at, trouble)
VALUES (:message_id, :batch_id, :recipients, :subject, :body, 0, :now, :next_at, '')
ON CONFLICT (message_id) DO NOTHING;

-- name: due_ingest_letters
-- Letters that are to be tried again, the longest waiting first.
SELECT l.message_id, l.batch_id, l.recipients, l.subject, l.body, l.tries, l.since, l.next_at, l.trouble
FROM ingest_letters l
WHERE l.next_at <= :now
ORDER BY l.next_at
LIMIT :most;

-- name: ingest_letter_turn
-- When a letter is to be tried again.
SELECT l.next_at FROM ingest_letters l WHERE l.message_id = :message_id;

-- name: take_ingest_letter
-- Keep others from trying a letter until then.
UPDATE ingest_letters SET next_at = :next_at WHERE message_id = :message_id;

-- name: postpone_ingest_letter
-- Write who has not got a letter, why, and when it is tried again.
UPDATE ingest_letters
SET recipients = :recipients, tries = tries + 1, next_at = :next_at, trouble = :trouble
WHERE message_id = :message_id;

-- name: forget_ingest_letter
-- Delete a letter that is delivered, or given up.
DELETE FROM ingest_letters WHERE message_id = :message_id;

-- name: put_ingest_progress
-- Write how much of a download has come.
INSERT INTO ingest_progress (job_id, bytes, total, at) VALUES (:job_id, :bytes, :total, :now)
ON CONFLICT (job_id) DO UPDATE SET bytes = excluded.bytes, total = excluded.total, at = excluded.at;

-- name: ingest_progress_by_jobs
-- How much of the downloads of these jobs has come.
SELECT p.job_id, p.bytes, p.total, p.at
FROM {each ids text AS k} JOIN ingest_progress p ON p.job_id = k.value;

-- name: forget_ingest_progress
-- Delete what is noted of a download that has ended.
DELETE FROM ingest_progress WHERE job_id = :job_id;

-- name: forget_old_ingest_progress
-- Delete what killed workers have noted of downloads.
DELETE FROM ingest_progress WHERE at < :before;
