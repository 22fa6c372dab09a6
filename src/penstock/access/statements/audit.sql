-- The audit log of administrators' actions. Rows are only added.

-- name: add_audit_entry
-- Record one action.
INSERT INTO audit_log (at, who, action, target, detail, address, hash)
VALUES (:at, :who, :action, :target, :detail, :address, :hash)

-- name: audit_head
-- Find the hash of the newest entry.
SELECT hash FROM audit_chain WHERE id = 1

-- name: set_audit_head
-- Record the hash of the newest entry.
INSERT INTO audit_chain (id, hash) VALUES (1, :hash)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash

-- name: audit_chain_after
-- List entries in the order of the chain.
SELECT {columns audit_log}
FROM audit_log
WHERE id > :after
ORDER BY id
LIMIT :most

-- name: audit_export
-- List entries in the order of their times, after one of them.
SELECT {columns audit_log}
FROM audit_log
WHERE (at, id) > (:at, :id)
ORDER BY at, id
LIMIT :limit

-- name: audit_entries
-- List actions since a time, newest first.
SELECT at, who, action, target, detail, address, id, hash
FROM audit_log
WHERE at >= :since
ORDER BY at DESC, id DESC
LIMIT :limit OFFSET :offset

-- name: audit_entries_of
-- List the actions of a caller since a time, newest first.
SELECT at, who, action, target, detail, address, id, hash
FROM audit_log
WHERE who = :who AND at >= :since
ORDER BY at DESC, id DESC
LIMIT :limit OFFSET :offset

-- name: audit_actions
-- List every kind of action once. Kinds are few and actions many: the recursion reads the index
-- once for each kind instead of walking it.
WITH RECURSIVE kinds (action) AS (
    SELECT MIN(action) FROM audit_log
    UNION ALL
    SELECT (SELECT MIN(l.action) FROM audit_log l WHERE l.action > kinds.action)
    FROM kinds
    WHERE kinds.action IS NOT NULL
)
SELECT action FROM kinds WHERE action IS NOT NULL
