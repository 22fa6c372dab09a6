-- What people with rights did; rows are only ever added.

-- name: add_audit_entry
-- Remember one action.
INSERT INTO audit_log (at, who, action, target, detail)
VALUES (:at, :who, :action, :target, :detail)

-- name: audit_entries
-- Actions, newest first: of somebody, with a word in what was done, since a time, or all. Taking
-- the word out changes what has it, in every database and however it collates.
SELECT at, who, action, target, detail
FROM audit_log
WHERE at >= :since
    AND (CAST(:who AS TEXT) IS NULL OR who = :who)
    AND (CAST(:action AS TEXT) IS NULL OR REPLACE(action, :action, '') <> action)
ORDER BY at DESC, id DESC
LIMIT :limit OFFSET :offset
