-- Arcs and the parts of their lots.

-- name: arcs_by_ids
-- Arcs by the ids of their jobs.
SELECT a.job_id, a.namespace, a.name, a.project, a.declaration, a.created_at, a.updated_at
FROM {each ids uuid AS k} JOIN arcs a ON a.job_id = k.value;

-- name: all_arcs
-- Every arc whose job was not deleted, by name.
SELECT a.job_id, a.namespace, a.name, a.project, a.declaration, a.created_at, a.updated_at
FROM arcs a
JOIN jobs j ON j.id = a.job_id AND j.hidden = 0
ORDER BY a.namespace, a.name;

-- name: put_arcs
-- Write arcs.
INSERT INTO arcs (job_id, namespace, name, project, declaration, created_at, updated_at)
{rows job_id uuid, namespace text, name text, project text, declaration text, created_at bigint, updated_at bigint}
ON CONFLICT (job_id) DO UPDATE SET
    project = excluded.project,
    declaration = excluded.declaration,
    updated_at = excluded.updated_at;

-- name: forget_arcs
-- Delete arcs.
DELETE FROM arcs WHERE job_id IN ({rows job_id uuid});

-- name: arc_parts_of_lots
-- The parts of some lots of an arc.
SELECT p.job_id, p.lot, p.part, p.state, p.inputs, p.attempt, p.run_id, p.outputs, p.error, p.at
FROM arc_parts p
WHERE p.job_id = :job_id AND p.lot {in lots text}
ORDER BY p.lot, p.part;

-- name: put_arc_parts
-- Write parts.
INSERT INTO arc_parts (job_id, lot, part, state, inputs, attempt, run_id, outputs, error, at)
{rows job_id uuid, lot text, part text, state text, inputs text, attempt uuid, run_id uuid, outputs text, error text, at bigint}
ON CONFLICT (job_id, lot, part) DO UPDATE SET
    state = excluded.state,
    inputs = excluded.inputs,
    attempt = excluded.attempt,
    run_id = excluded.run_id,
    outputs = excluded.outputs,
    error = excluded.error,
    at = excluded.at;

-- name: forget_arc_parts
-- Delete the parts of lots.
DELETE FROM arc_parts
WHERE (job_id, lot) IN (SELECT job_id, lot FROM ({rows job_id uuid, lot text}) r);

-- name: arc_attempts_by_ids
-- Failed attempts by the ids of their runs.
SELECT a.run_id, a.job_id, a.lot, a.state, a.keys, a.at
FROM {each ids uuid AS k} JOIN arc_attempts a ON a.run_id = k.value;

-- name: arc_attempts_of_lot
-- The failed attempts of an arc on a lot.
SELECT a.run_id, a.job_id, a.lot, a.state, a.keys, a.at
FROM arc_attempts a
WHERE a.job_id = :job_id AND a.lot = :lot
ORDER BY a.at;

-- name: put_arc_attempts
-- Write failed attempts.
INSERT INTO arc_attempts (run_id, job_id, lot, state, keys, at)
{rows run_id uuid, job_id uuid, lot text, state text, keys text, at bigint}
ON CONFLICT (run_id) DO UPDATE SET state = excluded.state, keys = excluded.keys, at = excluded.at;

-- name: running_lots
-- What is being worked on now, by whom; as many rows as there are live claims.
SELECT w.job_id, w.lot
FROM lot_work w
WHERE w.state = 'RUNNING';

-- name: run_states
-- The states of runs.
SELECT r.id, r.state FROM {each ids uuid AS k} JOIN runs r ON r.id = k.value;

-- name: listed_attempts
-- Which of these attempts were listed already.
SELECT a.run_id FROM {each ids uuid AS k} JOIN arc_attempts a ON a.run_id = k.value;

-- name: published_manifests
-- The manifests of every version that datasets have of a lot, and whose data is there.
SELECT m.key
FROM {each ids uuid AS k} JOIN lot_manifests m ON m.dataset_id = k.value AND m.lot = :lot
WHERE m.state <> 'removed';
