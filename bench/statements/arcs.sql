-- Beside arcs and gaps.

-- name: lots_left
-- How many lots a job has to work on, or is working on; each state has an index that holds only it.
SELECT (SELECT COUNT(*) FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'READY')
     + (SELECT COUNT(*) FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'RETRYABLE')
     + (SELECT COUNT(*) FROM lot_work w WHERE w.job_id = :job_id AND w.state = 'RUNNING')

-- name: scan_lots
-- What nobody can do without who wants to know of every lot of a dataset whether it is there.
SELECT s.status, COUNT(*)
FROM lot_status s
WHERE s.dataset_id = :dataset_id AND s.role = 'OUTPUT'
GROUP BY s.status

-- name: lose_lots
-- Forget that lots were there.
DELETE FROM lot_status WHERE dataset_id = :dataset_id AND role = 'OUTPUT' AND lot {in lots text}

-- name: empty_lots
-- Say that lots are rightly without data.
UPDATE lot_manifests SET state = 'empty' WHERE dataset_id = :dataset_id AND lot {in lots text}
