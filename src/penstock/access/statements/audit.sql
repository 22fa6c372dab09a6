-- What people with rights did; rows are only ever added.

-- name: add_audit_entry
-- Remember one action.
INSERT INTO audit_log (at, who, action, target, detail, address, hash)
VALUES (:at, :who, :action, :target, :detail, :address, :hash)

-- name: audit_head
-- The hash of the newest entry.
SELECT hash FROM audit_chain WHERE id = 1

-- name: set_audit_head
-- Remember the hash of the newest entry.
INSERT INTO audit_chain (id, hash) VALUES (1, :hash)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash

-- name: chain_audit_entry
-- Give an entry from before the chain its hash.
UPDATE audit_log SET hash = :hash WHERE id = :id

-- name: audit_chain_after
-- Entries in the order in which they were chained.
SELECT id, at, who, action, target, detail, address, hash
FROM audit_log
WHERE id > :after
ORDER BY id
LIMIT :most

-- name: audit_export
-- Entries in the order of their times, after one of them.
SELECT id, at, who, action, target, detail, address, hash
FROM audit_log
WHERE (at, id) > (:at, :id)
ORDER BY at, id
LIMIT :limit

-- name: audit_entries
-- Actions since a time, newest first.
SELECT at, who, action, target, detail, address, id, hash
FROM audit_log
WHERE at >= :since
ORDER BY at DESC, id DESC
LIMIT :limit OFFSET :offset

-- name: audit_entries_of
-- Actions of somebody since a time, newest first.
SELECT at, who, action, target, detail, address, id, hash
FROM audit_log
WHERE who = :who AND at >= :since
ORDER BY at DESC, id DESC
LIMIT :limit OFFSET :offset

-- name: audit_actions
-- Whatever was ever done, each once. There are few kinds of actions and many actions: the index is
-- asked for the next kind, again and again, and not walked.
WITH RECURSIVE kinds (action) AS (
    SELECT MIN(action) FROM audit_log
    UNION ALL
    SELECT (SELECT MIN(l.action) FROM audit_log l WHERE l.action > kinds.action)
    FROM kinds
    WHERE kinds.action IS NOT NULL
)
SELECT action FROM kinds WHERE action IS NOT NULL
