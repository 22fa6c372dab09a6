-- Each breaks one invariant by hand; others may break with it.

-- name: break_current_versions
-- The run that made the current version of raw has failed.
UPDATE runs SET state = 'FAILED'
WHERE id = (SELECT v.run_id FROM datasets d JOIN dataset_versions v ON v.id = d.current_version_id WHERE d.name = 'raw')

-- name: break_newest_versions
-- The first version of tick is the current one again.
UPDATE datasets
SET current_version_id = (SELECT v.id FROM dataset_versions v WHERE v.dataset_id = datasets.id AND v.published_at IS NOT NULL ORDER BY v.published_at LIMIT 1),
    published_at = (SELECT MIN(v.published_at) FROM dataset_versions v WHERE v.dataset_id = datasets.id)
WHERE name = 'tick'

-- name: break_pinned_versions
-- Runs have read versions that are not there.
UPDATE run_datasets SET version_id = '11111111-1111-8111-a111-111111111111' WHERE role = 'INPUT'

-- name: break_run_counts
-- A job counts a run too many.
UPDATE jobs SET run_count = run_count + 1 WHERE name = 'make'

-- name: break_version_counts
-- A dataset counts a version too many.
UPDATE datasets SET version_count = version_count + 1 WHERE name = 'raw'

-- name: break_latest_runs
-- A job shows its newest run in another state.
UPDATE jobs SET latest_run_state = 'ABORTED' WHERE name = 'make'

-- name: break_job_versions
-- The shapes of jobs are younger than their runs.
UPDATE job_versions SET created_at = created_at + 1000000, declared_at = NULL

-- name: break_job_versions_gone
-- A job's shape is not there.
DELETE FROM job_versions WHERE job_id IN (SELECT j.id FROM jobs j WHERE j.name = 'make')

-- name: break_tallies
-- Namespaces count more than there is.
UPDATE tallies SET total = total + 5

-- name: break_tallies_of_nothing
-- A namespace counts what is not there.
INSERT INTO tallies (kind, namespace, state, total) VALUES ('JOB', 'nowhere', 'FAILED', 1)

-- name: break_event_counts
-- Hours count an event too many.
UPDATE event_counts SET total = total + 1

-- name: break_event_counts_of_nothing
-- An hour counts events that are not there.
INSERT INTO event_counts (hour, event_type, total) VALUES (0, 'START', 1)

-- name: break_search
-- A dataset cannot be found any more.
DELETE FROM search_docs WHERE name = 'raw'

-- name: break_one_writer
-- What keeps a lot from having two writers.
DROP INDEX lot_status_one_writer

-- name: break_one_writer_too
-- Every lot of tick has a second writer.
INSERT INTO lot_status (dataset_id, lot, role, job_id, status, held_from, run_id, version_id, since)
SELECT s.dataset_id, s.lot, s.role, '11111111-1111-8111-a111-111111111111', s.status, '', NULL, s.version_id, s.since
FROM lot_status s JOIN datasets d ON d.id = s.dataset_id
WHERE d.name = 'tick' AND s.role = 'OUTPUT'

-- name: break_live_claims
-- The run of the live claim has failed.
UPDATE runs SET state = 'FAILED', ended_at = started_at
WHERE id IN (SELECT w.run_id FROM lot_work w WHERE w.state = 'RUNNING')

-- name: break_ended_claims
-- The live claim is over, and nobody told its run.
UPDATE lot_work SET state = 'WAITING' WHERE state = 'RUNNING'

-- name: break_locks
-- Lots are locked by nobody.
UPDATE lot_status SET status = 'RUNNING' WHERE status = 'READY'

-- name: break_claimed_inputs
-- The live claim has lost its lock on what it reads.
DELETE FROM lot_status WHERE role = 'INPUT' AND status = 'RUNNING'

-- name: break_ready_lots
-- Lots are READY in versions that are not there.
UPDATE lot_status SET version_id = '11111111-1111-8111-a111-111111111111' WHERE role = 'OUTPUT' AND status = 'READY'

-- name: break_holds
-- Lots that can be read are said to be held.
INSERT INTO lot_reasons (dataset_id, lot, why) SELECT dataset_id, lot, '[]' FROM lot_status WHERE role = 'OUTPUT' AND status = 'READY'

-- name: break_consumed_lots
-- Lots were consumed in versions that are not there.
UPDATE lot_status SET version_id = '11111111-1111-8111-a111-111111111111' WHERE role = 'INPUT' AND status = 'DONE'

-- name: break_work
-- What is done is to be done again.
UPDATE lot_work SET state = 'READY' WHERE state = 'DONE'

-- name: break_work_order
-- Work stands in another order.
UPDATE lot_work SET lot_key = 'last of all' WHERE state = 'DONE'

-- name: break_work_wires
-- Datasets do not find the jobs that write them.
DELETE FROM lot_job_datasets WHERE role = 'OUTPUT'

-- name: break_met_lots
-- Nobody has to do anything.
DELETE FROM lot_work

-- name: break_manifests
-- Lots are READY though they are not whole.
UPDATE lot_manifests SET state = 'partial' WHERE state = 'complete'

-- name: break_manifests_of_arcs
-- What an arc has made has no manifest.
DELETE FROM lot_manifests WHERE attempt <> ''

-- name: break_attempts
-- Manifests are of attempts that never published.
UPDATE lot_manifests SET attempt = '11111111-1111-8111-a111-111111111111'

-- name: break_outbox
-- A subscriber is ahead of all events.
INSERT INTO subscribers (name, kind, url, namespace, dataset, cursor, token, owner, lease_until, failures, next_try_at, error, created_at, updated_at)
VALUES ('early', 'webhook', 'http://127.0.0.1:9', '', '', 1000000, 1, '', 0, 0, 0, '', 1, 1)

-- name: break_arcs
-- An arc's job works lot by lot no more.
DELETE FROM lot_jobs WHERE job_id IN (SELECT a.job_id FROM arcs a WHERE a.name = 'shout')

-- name: break_parts
-- A part is complete, and its run goes on.
UPDATE arc_parts SET state = 'complete'

-- name: break_parts_of_done_lots
-- A part goes on of a lot that is done.
UPDATE lot_work SET state = 'DONE' WHERE state = 'RUNNING'

-- name: break_leftovers
-- An attempt that completed is listed as failed.
UPDATE arc_attempts
SET run_id = (SELECT r.id FROM runs r JOIN jobs j ON j.id = r.job_id WHERE r.state = 'COMPLETED' AND j.name = 'make' ORDER BY r.id LIMIT 1)

-- name: break_ingest_queue
-- An ingest job belongs to no batch.
INSERT INTO ingest_jobs (id, batch_id, configuration, identifiers, status, side, last_modified, retry_count, message, history, priority, space_needed, version, locked_by)
VALUES ('jid-1', 'bid-none', '{}', '{}', 'pending', 'batch-processing', 1, 0, '', '[]', 50, 0, 1, '')

-- name: break_ingest_locks
-- A batch is locked by nobody who lives.
INSERT INTO ingest_batches (id, collection, submission, status, last_modified, message, jobs, version, locked_by)
VALUES ('bid-locked', 'maps', '{"profile_name":"maps","submitter":"ann","payload_url":"http://x/y","type":"file","uid":"1"}', 'held', 1, '', 0, 1, 'a ghost')

-- name: break_ingest_stuck
-- A batch is processing, and no job of it is.
INSERT INTO ingest_batches (id, collection, submission, status, last_modified, message, jobs, version, locked_by)
VALUES ('bid-stuck', 'maps', '{"profile_name":"maps","submitter":"ann","payload_url":"http://x/y","type":"file","uid":"1"}', 'processing', 1, '', 0, 1, '')

-- name: break_ingest_totals
-- All batches together count jobs that are not there.
INSERT INTO ingest_tallies (batch_id, status, jobs, bytes) VALUES ('', 'failed', 3, 0)

-- name: break_ingest_tallies
-- A batch counts jobs that are not there.
INSERT INTO ingest_tallies (batch_id, status, jobs, bytes) VALUES ('bid-counted', 'failed', 3, 0)

-- name: break_batch_lots
-- A batch is published as a lot that is not there.
INSERT INTO batch_lots (batch_id, collection, submitter, dataset_id, lot, report, state, key, uris, bytes, digest, attempt, due_at, at)
VALUES ('bid-gone', 'maps', 'ann', '11111111-1111-8111-a111-111111111111', 'bid-gone', 1, 'complete', 'k', 1, 1, 'd', 'a', 0, 1)

-- name: break_reported_batches
-- A batch was reported, and is no lot.
INSERT INTO ingest_batches (id, collection, submission, status, last_modified, message, jobs, report, version, locked_by)
VALUES ('bid-told', 'maps', '{"profile_name":"maps","submitter":"ann","payload_url":"http://x/y","type":"file","uid":"1"}', 'completed', 4000000000000000, '', 0, '{}', 1, '')

-- name: break_deposits
-- The second version of an object is stored, and no first.
INSERT INTO stored_objects (ark, version, key, namespace, collection, batch_id, job_id, location, digest, files, bytes, title, run_id, at)
VALUES ('ark:/99999/fk4gap', 2, 'gap', 'ns', 'maps', 'b', 'jid-gap', 'l', 'd', 1, 1, 't', '11111111-1111-8111-a111-111111111111', 1)

-- name: break_object_writers
-- Somebody may write what is stored.
INSERT INTO ark_writers (ark, key, job_id) VALUES ('ark:/99999/fk4w', 'kept', 'jid-w')

-- name: break_stored_objects
-- An object is stored that is not in the store.
INSERT INTO stored_objects (ark, version, key, namespace, collection, batch_id, job_id, location, digest, files, bytes, title, run_id, at)
VALUES ('ark:/99999/fk4w', 1, 'kept', 'ns', 'maps', 'b', 'jid-w', 'l', 'd', 1, 1, 't', '11111111-1111-8111-a111-111111111111', 1)

-- name: read_this_version
-- Let the runs of a job have read a version.
UPDATE run_datasets
SET version_id = :version, dataset_id = (SELECT v.dataset_id FROM dataset_versions v WHERE v.id = :version)
WHERE role = 'INPUT'
  AND run_id IN (SELECT r.id FROM runs r JOIN jobs j ON j.id = r.job_id WHERE j.name = :job)

-- name: say_more_of_versions
-- Let every version have a facet more.
UPDATE dataset_versions SET facets = REPLACE(facets, '{"penstock_lot"', '{"more":{},"penstock_lot"')

-- name: break_edges
-- Jobs do not show what they have read.
DELETE FROM job_edges WHERE role = 'INPUT'

-- name: break_edges_of_going_runs
-- What jobs read is no longer current, though a run goes on.
UPDATE job_edges SET current = 0 WHERE role = 'INPUT'

-- name: break_current_edges
-- What jobs write is no longer current.
UPDATE job_edges SET current = 0 WHERE role = 'OUTPUT'

-- name: break_current_edges_of_nothing
-- A job shows that it writes what it reads.
INSERT INTO job_edges (job_id, role, dataset_id, current, first_at)
SELECT e.job_id, 'OUTPUT', e.dataset_id, 1, e.first_at
FROM job_edges e JOIN jobs j ON j.id = e.job_id
WHERE j.name = 'make' AND e.role = 'INPUT'

-- name: break_backfill_counts
-- The backfill that runs counts lots that it has not.
UPDATE backfills SET counts = '{"done":5}'

-- name: break_backfill_range
-- Backfills have looked where they were not told to.
UPDATE backfills SET looked_to = 0

-- name: break_ended_backfills
-- The backfill that runs is done.
UPDATE backfills SET state = 'done'

-- name: break_operations
-- Backfills are of a job that is not there.
UPDATE backfills SET job_id = '11111111-1111-8111-a111-111111111111'

-- name: break_operations_of_replays
-- A step is of a job that is not there.
UPDATE replay_steps SET job_id = '11111111-1111-8111-a111-111111111111' WHERE number = 1

-- name: break_replay_counts
-- A step has failed, and is not counted.
UPDATE replay_steps SET state = 'failed' WHERE number = 2

-- name: break_ended_replays
-- The replay that runs is done.
UPDATE replays SET state = 'done'

-- name: break_open_replays
-- Nobody looks after the replay that runs.
UPDATE replays SET is_open = 0

-- name: break_replay_order
-- Steps that wait for others do not.
UPDATE replay_steps SET waits_for = 0

-- name: break_replay_failures
-- The first step of the replay has failed, and what waits for it does not know.
UPDATE replay_steps SET state = 'failed' WHERE number = 1

-- name: break_turn_keepers
-- The replay that runs keeps the turns of its steps no more.
DELETE FROM turn_keepers

-- name: break_turn_keepers_of_nothing
-- Somebody keeps turns who is no replay.
INSERT INTO turn_keepers (id, name, is_paused)
VALUES ('11111111-1111-8111-a111-111111111111', 'replay of nobody', 0)

-- name: break_turn_keepers_paused
-- The replay that runs keeps turns as if it were paused.
UPDATE turn_keepers SET is_paused = 1

-- name: break_turns
-- The work of a step that was not begun does not wait for its turn.
DELETE FROM lot_turns WHERE job_id = (SELECT s.job_id FROM replay_steps s WHERE s.number = 2)

-- name: break_turns_in_vain
-- Steps were begun, and their work still waits for its turn.
UPDATE replay_steps SET state = 'going'

-- name: break_turns_of_nobody
-- Work waits for its turn in no order.
UPDATE lot_turns SET keepers = '[]'

-- name: break_audit_entry
-- Another key did it.
UPDATE audit_log SET who = 'nobody' WHERE id = (SELECT MIN(id) FROM audit_log)

-- name: break_audit_first
-- The first entry is gone.
DELETE FROM audit_log WHERE id = (SELECT MIN(id) FROM audit_log)

-- name: break_audit_newest
-- The newest entry is gone.
DELETE FROM audit_log WHERE id = (SELECT MAX(id) FROM audit_log)

-- name: break_audit_head
-- Nothing says which entry is the newest.
DELETE FROM audit_chain
