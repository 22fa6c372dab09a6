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
CREATE TABLE search_docs (
    rowid     INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE,
    kind      TEXT NOT NULL CHECK (kind IN ('DATASET', 'JOB')),
    body      TEXT NOT NULL
);
CREATE VIRTUAL TABLE search_words USING fts5 (body, content='search_docs', content_rowid='rowid', tokenize='unicode61');
CREATE TRIGGER search_docs_added AFTER INSERT ON search_docs BEGIN
    INSERT INTO search_words (rowid, body) VALUES (new.rowid, new.body);
END;
CREATE TRIGGER search_docs_removed AFTER DELETE ON search_docs BEGIN
    INSERT INTO search_words (search_words, rowid, body) VALUES ('delete', old.rowid, old.body);
END;
CREATE TRIGGER search_docs_changed AFTER UPDATE ON search_docs BEGIN
    INSERT INTO search_words (search_words, rowid, body) VALUES ('delete', old.rowid, old.body);
    INSERT INTO search_words (rowid, body) VALUES (new.rowid, new.body);
END;
