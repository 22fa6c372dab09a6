-- name: audit_entries_by_action
-- Differs by necessity: SQLite has no LATERAL, and runs the inner list once for each action.
-- List the actions of some kinds since a time, newest first.
SELECT a.at, a.who, a.action, a.target, a.detail, a.address, a.id, a.hash
FROM {each actions text AS k}
JOIN audit_log a ON a.id IN (
    SELECT l.id FROM audit_log l WHERE l.action = k.value AND l.at >= :since
    ORDER BY l.at DESC, l.id DESC LIMIT :limit + :offset
)
ORDER BY a.at DESC, a.id DESC LIMIT :limit OFFSET :offset

-- name: audit_entries_of_by_action
-- Differs by necessity: SQLite has no LATERAL, and runs the inner list once for each action.
-- List a caller's actions of some kinds since a time, newest first.
SELECT a.at, a.who, a.action, a.target, a.detail, a.address, a.id, a.hash
FROM {each actions text AS k}
JOIN audit_log a ON a.id IN (
    SELECT l.id FROM audit_log l WHERE l.who = :who AND l.action = k.value AND l.at >= :since
    ORDER BY l.at DESC, l.id DESC LIMIT :limit + :offset
)
ORDER BY a.at DESC, a.id DESC LIMIT :limit OFFSET :offset
