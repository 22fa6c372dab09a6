-- Arcs and the parts of their lots.

-- name: arcs_by_ids
-- Find arcs by the ids of their jobs.
SELECT {columns arcs a}
FROM {each ids uuid AS k} JOIN arcs a ON a.job_id = k.value;

-- name: all_arcs
-- List the arcs whose jobs are not deleted, by name.
SELECT {columns arcs a}
FROM arcs a
JOIN jobs j ON j.id = a.job_id AND j.hidden = 0
ORDER BY a.namespace, a.name;

-- name: put_arcs
-- Write arcs.
{upsert arcs, keep namespace, name, created_at};

-- name: forget_arcs
-- Delete arcs.
DELETE FROM arcs WHERE job_id IN ({rows job_id uuid});

-- name: arc_parts_of_lots
-- Find the parts of some lots of an arc.
SELECT {columns arc_parts p}
FROM arc_parts p
WHERE p.job_id = :job_id AND p.lot {in lots text}
ORDER BY p.lot, p.part;

-- name: put_arc_parts
-- Write parts.
{upsert arc_parts};

-- name: forget_arc_parts
-- Delete the parts of lots.
DELETE FROM arc_parts
WHERE (job_id, lot) IN (SELECT job_id, lot FROM ({rows job_id uuid, lot text}) r);

-- name: arc_attempts_by_ids
-- Find failed attempts by the ids of their runs.
SELECT {columns arc_attempts a}
FROM {each ids uuid AS k} JOIN arc_attempts a ON a.run_id = k.value;

-- name: arc_attempts_of_lot
-- Find the failed attempts of an arc on a lot.
SELECT {columns arc_attempts a}
FROM arc_attempts a
WHERE a.job_id = :job_id AND a.lot = :lot
ORDER BY a.at;

-- name: put_arc_attempts
-- Write failed attempts.
{upsert arc_attempts, keep job_id, lot};

-- name: running_lots
-- List the live claims on lots of arcs.
SELECT w.job_id, w.lot
FROM lot_work w
WHERE w.state = 'RUNNING';

-- name: run_states
-- Find the states of runs.
SELECT r.id, r.state FROM {each ids uuid AS k} JOIN runs r ON r.id = k.value;

-- name: listed_attempts
-- Find the attempts that are listed already.
SELECT a.run_id FROM {each ids uuid AS k} JOIN arc_attempts a ON a.run_id = k.value;

-- name: published_manifests
-- Find the manifests, with data, of every version that datasets have of a lot.
SELECT m.key
FROM {each ids uuid AS k} JOIN lot_manifests m ON m.dataset_id = k.value AND m.lot = :lot
WHERE m.state <> 'removed';
