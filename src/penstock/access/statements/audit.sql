-- What people with rights did; rows are only ever added.

-- name: add_audit_entry
-- Remember one action.
INSERT INTO audit_log (at, who, action, target, detail)
VALUES (:at, :who, :action, :target, :detail)

-- name: audit_entries
-- Actions since a time, newest first.
SELECT at, who, action, target, detail
FROM audit_log
WHERE at >= :since
ORDER BY at DESC, id DESC
LIMIT :limit OFFSET :offset

-- name: audit_entries_of
-- Actions of somebody since a time, newest first.
SELECT at, who, action, target, detail
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
