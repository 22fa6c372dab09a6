-- Events are listed by kind: Marquez' clients expect events of runs alone, and no list may read
-- through those of other kinds. The kind takes its place before the time in both indexes.
CREATE INDEX events_by_kind ON events (kind, event_time, id);
DROP INDEX events_by_time;
CREATE INDEX events_of_namespace_by_kind ON events (namespace, kind, event_time, id);
DROP INDEX events_of_namespace;

-- Events without a run are counted under their kind. Before 1970 a remainder is negative.
UPDATE event_counts
SET total = total - (
    SELECT COUNT(*) FROM events e
    WHERE e.kind IN ('JOB', 'DATASET') AND e.event_type = event_counts.event_type
      AND e.event_time >= event_counts.hour AND e.event_time < event_counts.hour + 3600000000
);
INSERT INTO event_counts (hour, event_type, total)
SELECT t.hour, t.kind, COUNT(*)
FROM (SELECT e.event_time - (e.event_time % 3600000000 + 3600000000) % 3600000000 AS hour, e.kind
      FROM events e
      WHERE e.kind IN ('JOB', 'DATASET')) t
GROUP BY t.hour, t.kind;

-- Runs are listed by state, newest first, in all namespaces and in one: of the runs of a namespace
-- only the job knew it. The namespace is written where a run is given to a job.
ALTER TABLE runs ADD COLUMN namespace TEXT NOT NULL DEFAULT '';
UPDATE runs SET namespace = (SELECT j.namespace FROM jobs j WHERE j.id = runs.job_id)
WHERE EXISTS (SELECT 1 FROM jobs j WHERE j.id = runs.job_id);
CREATE INDEX runs_by_state ON runs (state, created_at, id);
CREATE INDEX runs_of_namespace_by_state ON runs (namespace, state, created_at, id);

-- Whether a child of a run goes on is asked of its index, however many children have ended.
CREATE INDEX runs_of_parent ON runs (parent_run_id, state) WHERE parent_run_id IS NOT NULL;
DROP INDEX runs_by_parent;
