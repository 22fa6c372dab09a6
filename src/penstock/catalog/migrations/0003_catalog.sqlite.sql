-- The words of names, descriptions, fields and tags of datasets and jobs, split alike on every
-- database. namespace, name and hidden are copies: search counts and sorts without a join.
CREATE TABLE search_docs (
    rowid     INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE,
    kind      TEXT NOT NULL CHECK (kind IN ('DATASET', 'JOB')),
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    hidden    INTEGER NOT NULL CHECK (hidden IN (0, 1)),
    body      TEXT NOT NULL
);
-- A page of search may sort thousands of rows: their names, without their words.
CREATE INDEX search_docs_names ON search_docs (rowid, name, namespace, kind);

-- The full-text index holds visible rows only, so that it can count its own matches. The kind of a
-- row is a word of the index too: '0DATASET' or '0JOB'. No word of a name begins with 0.
CREATE VIEW visible_search_docs AS SELECT rowid, body || ' 0' || kind AS body FROM search_docs WHERE hidden = 0;
CREATE VIRTUAL TABLE search_words USING fts5 (body, content='visible_search_docs', content_rowid='rowid', tokenize='unicode61', detail='none', columnsize=0);
CREATE TRIGGER search_docs_added AFTER INSERT ON search_docs WHEN new.hidden = 0 BEGIN
    INSERT INTO search_words (rowid, body) VALUES (new.rowid, new.body || ' 0' || new.kind);
END;
CREATE TRIGGER search_docs_removed AFTER DELETE ON search_docs WHEN old.hidden = 0 BEGIN
    INSERT INTO search_words (search_words, rowid, body) VALUES ('delete', old.rowid, old.body || ' 0' || old.kind);
END;
CREATE TRIGGER search_docs_changed AFTER UPDATE ON search_docs BEGIN
    INSERT INTO search_words (search_words, rowid, body)
    SELECT 'delete', old.rowid, old.body || ' 0' || old.kind WHERE old.hidden = 0;
    INSERT INTO search_words (rowid, body) SELECT new.rowid, new.body || ' 0' || new.kind WHERE new.hidden = 0;
END;

-- Clients of Marquez expect this namespace in a new catalog.
INSERT INTO namespaces (name, owner_name, description, created_at, updated_at)
SELECT 'default', 'anonymous', 'For what is not in a namespace of its own', t.at, t.at
FROM (SELECT CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER) AS at) t;

-- Nearly all runs are in one state: SQLite must not expect the state alone to select few of them.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('runs', 'runs_by_job', '1000000 100 1 1'),
    ('runs', 'runs_ended', '1000000 100 1'),
    ('runs', 'runs_of_parent', '100000 10 3'),
    ('runs', 'runs_by_state', '1000000 200000 1 1'),
    ('runs', 'runs_of_namespace_by_state', '1000000 20000 4000 1 1');
