-- The texts by which deposits are found: folded to lower case, and cut at 200 characters.
-- `reference` is the ARK, or the batch for a depositor; `name` is what to show.
CREATE TABLE search_keys (
    namespace  TEXT NOT NULL,
    key        TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('ark', 'local-id', 'file', 'digest', 'depositor')),
    name       TEXT NOT NULL,
    collection TEXT NOT NULL,
    reference  TEXT NOT NULL,
    version    BIGINT NOT NULL
);
CREATE UNIQUE INDEX search_keys_of_depositors ON search_keys (reference, key) WHERE kind = 'depositor';
INSERT INTO search_keys (namespace, key, kind, name, collection, reference, version)
SELECT o.namespace, lower(substr(o.ark, 1, 200)), 'ark', o.ark, o.collection, o.ark, 1
FROM stored_objects o WHERE o.version = 1;
INSERT INTO search_keys (namespace, key, kind, name, collection, reference, version)
SELECT l.namespace, lower(substr(l.local_id, 1, 200)), 'local-id', l.local_id, o.collection, l.ark, 1
FROM local_ids l JOIN stored_objects o ON o.ark = l.ark AND o.version = 1;
INSERT INTO search_keys (namespace, key, kind, name, collection, reference, version)
SELECT d.namespace, lower(substr(b.submitter, 1, 200)), 'depositor', b.submitter, b.collection, b.batch_id, 0
FROM batch_lots b JOIN datasets d ON d.id = b.dataset_id;
