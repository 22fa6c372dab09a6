CREATE TABLE events (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    event_time INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('RUN', 'JOB', 'DATASET')),
    namespace   TEXT NOT NULL,
    event_type TEXT NOT NULL,
    run_id     TEXT,
    payload    TEXT NOT NULL
);
CREATE INDEX events_by_time ON events (event_time, id);
CREATE INDEX events_of_namespace ON events (namespace, event_time, id);
CREATE INDEX events_by_run ON events (run_id) WHERE run_id IS NOT NULL;

-- body: the words of names, description, fields and tags, split the same way on every database.
-- namespace, name and hidden are as the dataset or job has them, so that what is found is counted
-- and sorted without looking there.
CREATE TABLE search_docs (
    rowid     INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE,
    kind      TEXT NOT NULL CHECK (kind IN ('DATASET', 'JOB')),
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    hidden    INTEGER NOT NULL CHECK (hidden IN (0, 1)),
    body      TEXT NOT NULL
);
-- Thousands of rows are sorted for one page of search: their names without their words.
CREATE INDEX search_docs_names ON search_docs (rowid, name, namespace, kind);

-- Words of what is hidden are not in the index, so that it can count what is found by itself.
CREATE VIEW visible_search_docs AS SELECT rowid, body FROM search_docs WHERE hidden = 0;
CREATE VIRTUAL TABLE search_words USING fts5 (body, content='visible_search_docs', content_rowid='rowid', tokenize='unicode61', detail='none', columnsize=0);
CREATE TRIGGER search_docs_added AFTER INSERT ON search_docs WHEN new.hidden = 0 BEGIN
    INSERT INTO search_words (rowid, body) VALUES (new.rowid, new.body);
END;
CREATE TRIGGER search_docs_removed AFTER DELETE ON search_docs WHEN old.hidden = 0 BEGIN
    INSERT INTO search_words (search_words, rowid, body) VALUES ('delete', old.rowid, old.body);
END;
CREATE TRIGGER search_docs_changed AFTER UPDATE ON search_docs BEGIN
    INSERT INTO search_words (search_words, rowid, body)
    SELECT 'delete', old.rowid, old.body WHERE old.hidden = 0;
    INSERT INTO search_words (rowid, body) SELECT new.rowid, new.body WHERE new.hidden = 0;
END;
