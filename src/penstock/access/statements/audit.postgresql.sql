-- name: audit_entries_by_action
-- Differs by necessity: PostgreSQL would try the inner list of IN on every entry; LATERAL asks the
-- index once for each action. An action that is equal to a value would let it walk back by time and
-- filter, which reads the whole log for a rare action; a range of rows has only one index.
-- What was done of some kinds since a time, newest first.
SELECT a.at, a.who, a.action, a.target, a.detail, a.address, a.id, a.hash
FROM {each actions text AS k}
CROSS JOIN LATERAL (
    SELECT l.id, l.at, l.who, l.action, l.target, l.detail, l.address, l.hash
    FROM audit_log l
    WHERE (l.action, l.at, l.id) >= (k.value, :since, 0)
        AND (l.action, l.at, l.id)
            <= (k.value, 9223372036854775807, 9223372036854775807)
    ORDER BY l.action DESC, l.at DESC, l.id DESC LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
) a
ORDER BY a.at DESC, a.id DESC LIMIT :limit OFFSET :offset

-- name: audit_entries_of_by_action
-- Differs by necessity: PostgreSQL would try the inner list of IN on every entry; LATERAL asks the
-- index once for each action.
-- What somebody did of some kinds since a time, newest first.
SELECT a.at, a.who, a.action, a.target, a.detail, a.address, a.id, a.hash
FROM {each actions text AS k}
CROSS JOIN LATERAL (
    SELECT l.id, l.at, l.who, l.action, l.target, l.detail, l.address, l.hash
    FROM audit_log l WHERE l.who = :who AND l.action = k.value AND l.at >= :since
    ORDER BY l.at DESC, l.id DESC LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
) a
ORDER BY a.at DESC, a.id DESC LIMIT :limit OFFSET :offset
