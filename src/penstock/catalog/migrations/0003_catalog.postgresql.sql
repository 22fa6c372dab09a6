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

-- body: the words of names, description, fields and tags, split the same way on every database.
CREATE TABLE search_docs (
    id       uuid PRIMARY KEY,
    kind     text NOT NULL CHECK (kind IN ('DATASET', 'JOB')),
    body     text NOT NULL,
    words    tsvector GENERATED ALWAYS AS (to_tsvector('simple', body)) STORED
);
CREATE INDEX search_docs_by_word ON search_docs USING gin (words);

-- An ordinary event stays on its page as it is: compressing it costs more than writing it.
ALTER TABLE events SET (toast_tuple_target = 8160);

-- Room on each page, so that rows changed by every run are rewritten in place.
ALTER TABLE datasets SET (fillfactor = 80);
ALTER TABLE jobs SET (fillfactor = 80);
ALTER TABLE runs SET (fillfactor = 80);
ALTER TABLE dataset_versions SET (fillfactor = 80);
ALTER TABLE dataset_sightings SET (fillfactor = 60);
