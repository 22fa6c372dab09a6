-- The words of names, descriptions, fields and tags of datasets and jobs, split alike on every
-- database. namespace, name and hidden are copies: search counts and sorts without a join.
CREATE TABLE search_docs (
    id        uuid PRIMARY KEY,
    hidden    bigint NOT NULL CHECK (hidden IN (0, 1)),
    kind      text NOT NULL CHECK (kind IN ('DATASET', 'JOB')),
    namespace text NOT NULL,
    name      text NOT NULL,
    words     tsvector NOT NULL
);
-- Every search reads through the pending list of the index, so PostgreSQL must keep it short.
CREATE INDEX search_docs_by_word ON search_docs USING gin (words)
    WITH (gin_pending_list_limit = 512) WHERE hidden = 0;

-- Store ordinary events in their page uncompressed: compression costs more than the write.
ALTER TABLE events SET (toast_tuple_target = 8160);

-- Leave room on each page: rows that every run changes are then rewritten in place.
ALTER TABLE datasets SET (fillfactor = 80);
ALTER TABLE jobs SET (fillfactor = 80);
ALTER TABLE job_versions SET (fillfactor = 80);
ALTER TABLE runs SET (fillfactor = 80);
ALTER TABLE dataset_versions SET (fillfactor = 80);
ALTER TABLE dataset_sightings SET (fillfactor = 60);

-- Clients of Marquez expect this namespace in a new catalog.
INSERT INTO namespaces (name, owner_name, description, created_at, updated_at)
SELECT 'default', 'anonymous', 'For what is not in a namespace of its own', t.at, t.at
FROM (SELECT CAST(extract(epoch FROM now()) * 1000000 AS bigint) AS at) t;
