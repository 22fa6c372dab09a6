-- name: search_by_name
-- Differs by necessity: SQLite finds words in its FTS5 table, which returns the numbers of rows.
-- Read a page of the visible datasets and jobs with these words, by name. Each row has the
-- number of all matches; an empty page has one row without a name. There may be thousands of
-- matches: without a namespace the words alone are counted, and the named index has every column
-- that is sorted.
WITH hits AS MATERIALIZED (
    SELECT rowid AS number FROM search_words
    WHERE :namespace IS NULL AND search_words MATCH :fts5
    UNION ALL
    SELECT s.rowid FROM search_words
    CROSS JOIN search_docs s INDEXED BY search_docs_names ON s.rowid = search_words.rowid
    WHERE :namespace IS NOT NULL AND search_words MATCH :fts5 AND s.namespace = :namespace
)
SELECT whole.total, doc.kind, doc.namespace, doc.name,
       CASE doc.kind WHEN 'DATASET' THEN (SELECT d.updated_at FROM datasets d WHERE d.id = doc.id)
                     ELSE (SELECT j.updated_at FROM jobs j WHERE j.id = doc.id) END
FROM (SELECT COUNT(*) AS total FROM hits) whole
LEFT JOIN (
    SELECT s.rowid AS number
    FROM hits CROSS JOIN search_docs s INDEXED BY search_docs_names ON s.rowid = hits.number
    ORDER BY s.name, s.namespace, s.kind
    LIMIT :limit OFFSET :offset
) page ON true
LEFT JOIN search_docs doc ON doc.rowid = page.number
ORDER BY doc.name, doc.namespace, doc.kind

-- name: count_found_jobs
-- Differs by necessity: SQLite finds words in its FTS5 table, which returns the numbers of rows.
-- Count the visible jobs with these words, one of which is the word for jobs.
SELECT COUNT(*) FROM search_words WHERE search_words MATCH :fts5

-- name: search_latest_jobs
-- Differs by necessity: SQLite finds words in its FTS5 table, and has no LATERAL. Read a page of
-- the jobs with these words among the last updated jobs, of which a number is read for each
-- state. Jobs with the time of the oldest of them are left out: others with that time may not be
-- among them. The sign keeps SQLite from trying every match on every job.
WITH latest AS MATERIALIZED (
    SELECT j.id, j.updated_at
    FROM {each states text AS k}
    JOIN jobs j ON j.rowid IN (
        SELECT l.rowid FROM jobs l WHERE l.latest_run_state = k.value AND l.hidden = 0
        ORDER BY l.updated_at DESC, l.id DESC LIMIT :most
    )
    ORDER BY j.updated_at DESC LIMIT :most
)
SELECT s.kind, s.namespace, s.name, t.updated_at
FROM latest t CROSS JOIN search_docs s ON s.id = t.id
WHERE +s.rowid IN (SELECT rowid FROM search_words WHERE search_words MATCH :fts5)
  AND t.updated_at > (SELECT MIN(updated_at) FROM latest)
ORDER BY t.updated_at DESC, s.name, s.namespace
LIMIT :limit OFFSET :offset

-- name: search_by_time
-- Differs by necessity: SQLite finds words in its FTS5 table, which returns the numbers of rows.
-- Read a page of the matches that were updated in a range of time, by name or last updated
-- first. Only datasets and jobs have that time, so each match is looked up there.
WITH matches AS MATERIALIZED (
    SELECT s.kind, s.namespace, s.name,
           CASE s.kind WHEN 'DATASET' THEN (SELECT d.updated_at FROM datasets d WHERE d.id = s.id)
                       ELSE (SELECT j.updated_at FROM jobs j WHERE j.id = s.id) END AS updated_at
    FROM search_words
    CROSS JOIN search_docs s INDEXED BY search_docs_names ON s.rowid = search_words.rowid
    WHERE search_words MATCH :fts5
      AND (:namespace IS NULL OR s.namespace = :namespace)
)
SELECT whole.total, page.kind, page.namespace, page.name, page.updated_at
FROM (
    SELECT COUNT(*) AS total FROM matches WHERE updated_at >= :after AND updated_at < :before
) whole
LEFT JOIN (
    SELECT kind, namespace, name, updated_at FROM matches
    WHERE updated_at >= :after AND updated_at < :before
    ORDER BY CASE WHEN :sort = 'UPDATE_AT' THEN updated_at END DESC, name, namespace, kind
    LIMIT :limit OFFSET :offset
) page ON true
ORDER BY CASE WHEN :sort = 'UPDATE_AT' THEN page.updated_at END DESC,
         page.name, page.namespace, page.kind
