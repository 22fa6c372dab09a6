-- What people with rights did; rows are only ever added.

-- name: add_audit_entry
-- Remember one action.
INSERT INTO audit_log (at, who, action, target, detail)
VALUES (:at, :who, :action, :target, :detail)

-- name: audit_entries
-- Actions, newest first.
SELECT at, who, action, target, detail
FROM audit_log
ORDER BY at DESC, id DESC
LIMIT :limit OFFSET :offset
