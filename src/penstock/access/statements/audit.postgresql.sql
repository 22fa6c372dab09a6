-- name: audit_entries_by_action
-- Differs by necessity: PostgreSQL would run the inner list of IN for every entry; LATERAL reads
-- the index once for each action. The condition on the action is a range of rows, because only
-- one index serves that. With an equality, PostgreSQL walks back by time and filters, which
-- reads the whole log for a rare action. List the actions of some kinds since a time, newest
-- first.
SELECT a.at, a.who, a.action, a.target, a.detail, a.address, a.id, a.hash
FROM {each actions text AS k}
CROSS JOIN LATERAL (
    SELECT {columns audit_log l}
    FROM audit_log l
    WHERE (l.action, l.at, l.id) >= (k.value, :since, 0)
        AND (l.action, l.at, l.id)
            <= (k.value, 9223372036854775807, 9223372036854775807)
    ORDER BY l.action DESC, l.at DESC, l.id DESC LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
) a
ORDER BY a.at DESC, a.id DESC LIMIT :limit OFFSET :offset

-- name: audit_entries_of_by_action
-- Differs by necessity: PostgreSQL would run the inner list of IN for every entry; LATERAL reads
-- the index once for each action. List a caller's actions of some kinds since a time, newest
-- first.
SELECT a.at, a.who, a.action, a.target, a.detail, a.address, a.id, a.hash
FROM {each actions text AS k}
CROSS JOIN LATERAL (
    SELECT {columns audit_log l}
    FROM audit_log l WHERE l.who = :who AND l.action = k.value AND l.at >= :since
    ORDER BY l.at DESC, l.id DESC LIMIT CAST(:limit AS BIGINT) + CAST(:offset AS BIGINT)
) a
ORDER BY a.at DESC, a.id DESC LIMIT :limit OFFSET :offset
