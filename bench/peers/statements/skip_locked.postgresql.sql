-- name: skip_locked_fill
-- Differs by necessity: only PostgreSQL is measured. Have more work waiting.
INSERT INTO skip_locked_work (lot, state)
SELECT 'part-' || n, 'READY' FROM generate_series(1, :count) AS n

-- name: skip_locked_claim
-- Differs by necessity: only PostgreSQL skips what others have locked. Claim the oldest work.
UPDATE skip_locked_work SET state = 'RUNNING', owner = :owner, since = :now
WHERE id IN (
    SELECT id FROM skip_locked_work WHERE state = 'READY'
    ORDER BY id LIMIT :count FOR UPDATE SKIP LOCKED
)
RETURNING id, lot

-- name: skip_locked_complete
-- Differs by necessity: only PostgreSQL is measured. Complete what was claimed.
UPDATE skip_locked_work SET state = 'DONE', since = :now WHERE id = ANY(:ids)
