-- name: audit_entries_by_action
-- Differs by necessity: PostgreSQL would try the inner list of IN on every entry; LATERAL asks the
-- index once for each action.
-- What was done of some kinds since a time, newest first.
SELECT a.at, a.who, a.action, a.target, a.detail
FROM {each actions text AS k}
CROSS JOIN LATERAL (
    SELECT l.id, l.at, l.who, l.action, l.target, l.detail
    FROM audit_log l WHERE l.action = k.value AND l.at >= :since
    ORDER BY l.at DESC, l.id DESC LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
) a
ORDER BY a.at DESC, a.id DESC LIMIT :limit OFFSET :offset

-- name: audit_entries_of_by_action
-- Differs by necessity: PostgreSQL would try the inner list of IN on every entry; LATERAL asks the
-- index once for each action.
-- What somebody did of some kinds since a time, newest first.
SELECT a.at, a.who, a.action, a.target, a.detail
FROM {each actions text AS k}
CROSS JOIN LATERAL (
    SELECT l.id, l.at, l.who, l.action, l.target, l.detail
    FROM audit_log l WHERE l.who = :who AND l.action = k.value AND l.at >= :since
    ORDER BY l.at DESC, l.id DESC LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
) a
ORDER BY a.at DESC, a.id DESC LIMIT :limit OFFSET :offset
