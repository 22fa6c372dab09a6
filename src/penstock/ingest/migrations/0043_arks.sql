-- ARKs that are in use, whoever minted them, and the namespace that each belongs to. storage is where
-- its object is kept, once it is stored; empty is the server's own store.
CREATE TABLE arks (
    ark       TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    storage   TEXT
);
INSERT INTO arks (ark, namespace, storage)
SELECT o.ark, o.namespace, ''
FROM stored_objects o
WHERE NOT EXISTS (SELECT 1 FROM stored_objects n WHERE n.ark = o.ark AND n.version > o.version);
-- Nothing is stored under the others yet: they are the namespace's whose deposit writes them.
INSERT INTO arks (ark, namespace, storage)
SELECT u.ark, '', NULL
FROM (
    SELECT m.ark FROM minted_arks m WHERE m.ark IS NOT NULL
    UNION SELECT w.ark FROM ark_writers w
    UNION SELECT l.ark FROM local_ids l
) u
WHERE NOT EXISTS (SELECT 1 FROM arks a WHERE a.ark = u.ark);

-- Which ARK an owner's own name for an object stands for, in each namespace.
ALTER TABLE local_ids RENAME TO old_local_ids;
CREATE TABLE local_ids (
    namespace TEXT NOT NULL,
    owner     TEXT NOT NULL,
    local_id  TEXT NOT NULL,
    ark       TEXT NOT NULL,
    PRIMARY KEY (namespace, owner, local_id)
) WITHOUT ROWID;
INSERT INTO local_ids (namespace, owner, local_id, ark)
SELECT a.namespace, l.owner, l.local_id, l.ark
FROM old_local_ids l JOIN arks a ON a.ark = l.ark;
DROP TABLE old_local_ids;
