CREATE TABLE events (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_time  bigint NOT NULL,
    received_at bigint NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('RUN', 'JOB', 'DATASET')),
    namespace   text NOT NULL,
    event_type  text NOT NULL,
    run_id      uuid,
    payload     text NOT NULL
);
CREATE INDEX events_by_time ON events (event_time, id);
CREATE INDEX events_of_namespace ON events (namespace, event_time, id);
CREATE INDEX events_by_run ON events (run_id) WHERE run_id IS NOT NULL;

-- words: those of names, description, fields and tags, split the same way on every database.
-- namespace, name and hidden are as the dataset or job has them, so that what is found is counted
-- and sorted without looking there.
CREATE TABLE search_docs (
    id        uuid PRIMARY KEY,
    hidden    bigint NOT NULL CHECK (hidden IN (0, 1)),
    kind      text NOT NULL CHECK (kind IN ('DATASET', 'JOB')),
    namespace text NOT NULL,
    name      text NOT NULL,
    words     tsvector NOT NULL
);
-- Every search reads through what was written last, so PostgreSQL is to sort that in early.
CREATE INDEX search_docs_by_word ON search_docs USING gin (words)
    WITH (gin_pending_list_limit = 512) WHERE hidden = 0;

-- An ordinary event stays on its page as it is: compressing it costs more than writing it.
ALTER TABLE events SET (toast_tuple_target = 8160);

-- Room on each page, so that rows changed by every run are rewritten in place.
ALTER TABLE datasets SET (fillfactor = 80);
ALTER TABLE jobs SET (fillfactor = 80);
ALTER TABLE job_versions SET (fillfactor = 80);
ALTER TABLE runs SET (fillfactor = 80);
ALTER TABLE dataset_versions SET (fillfactor = 80);
ALTER TABLE dataset_sightings SET (fillfactor = 60);
