-- name: put_search_docs
-- Differs by necessity: PostgreSQL searches a tsvector. The text itself, stored beside it, would
-- only spread the matches over more pages. Write the words of datasets and jobs.
INSERT INTO search_docs (id, kind, namespace, name, hidden, words)
SELECT r.id, r.kind, r.namespace, r.name, r.hidden,
       array_to_tsvector(string_to_array(r.body, ' '))
FROM ({rows id uuid, kind text, namespace text, name text, hidden bigint, body text}) AS r
ON CONFLICT (id) DO UPDATE SET hidden = excluded.hidden, words = excluded.words

-- name: search_by_name
-- Differs by necessity: PostgreSQL finds words in a tsvector with a GIN index. Read a page of
-- the visible datasets and jobs with these words, by name. Each row has the number of all
-- matches; an empty page has one row without a name.
WITH matches AS MATERIALIZED (
    SELECT s.id, s.kind, s.namespace, s.name FROM search_docs s
    WHERE s.words @@ CAST(:tsquery AS tsquery) AND s.hidden = 0
      AND (CAST(:kind AS text) IS NULL OR s.kind = :kind)
      AND (CAST(:namespace AS text) IS NULL OR s.namespace = :namespace)
)
SELECT whole.total, page.kind, page.namespace, page.name,
       CASE page.kind WHEN 'DATASET' THEN (SELECT d.updated_at FROM datasets d WHERE d.id = page.id)
                      ELSE (SELECT j.updated_at FROM jobs j WHERE j.id = page.id) END
FROM (SELECT COUNT(*) AS total FROM matches) whole
LEFT JOIN (
    SELECT id, kind, namespace, name FROM matches
    ORDER BY name, namespace, kind
    LIMIT :limit OFFSET :offset
) page ON true
ORDER BY page.name, page.namespace, page.kind

-- name: count_found_jobs
-- Differs by necessity: PostgreSQL finds words in a tsvector with a GIN index. Count the visible
-- jobs with these words.
SELECT COUNT(*) FROM search_docs s
WHERE s.words @@ CAST(:tsquery AS tsquery) AND s.hidden = 0 AND s.kind = 'JOB'

-- name: search_latest_jobs
-- Differs by necessity: PostgreSQL finds words in a tsvector, and takes LATERAL for each state.
-- Read a page of the jobs with these words among the last updated jobs, of which a number is
-- read for each state. Jobs with the time of the oldest of them are left out: others with that
-- time may not be among them.
WITH latest AS MATERIALIZED (
    SELECT j.id, j.updated_at
    FROM {each states text AS k}
    CROSS JOIN LATERAL (
        SELECT l.id, l.updated_at FROM jobs l WHERE l.latest_run_state = k.value AND l.hidden = 0
        ORDER BY l.updated_at DESC, l.id DESC LIMIT CAST(:most AS BIGINT)
    ) j
    ORDER BY j.updated_at DESC LIMIT CAST(:most AS BIGINT)
)
SELECT s.kind, s.namespace, s.name, t.updated_at
FROM latest t JOIN search_docs s ON s.id = t.id
WHERE s.words @@ CAST(:tsquery AS tsquery)
  AND t.updated_at > (SELECT MIN(updated_at) FROM latest)
ORDER BY t.updated_at DESC, s.name, s.namespace
LIMIT :limit OFFSET :offset

-- name: search_by_time
-- Differs by necessity: PostgreSQL finds words in a tsvector with a GIN index. Read a page of
-- the matches that were updated in a range of time, by name or last updated first. Only datasets
-- and jobs have that time, so each match is looked up there.
WITH matches AS MATERIALIZED (
    SELECT s.kind, s.namespace, s.name,
           CASE s.kind WHEN 'DATASET' THEN (SELECT d.updated_at FROM datasets d WHERE d.id = s.id)
                       ELSE (SELECT j.updated_at FROM jobs j WHERE j.id = s.id) END AS updated_at
    FROM search_docs s
    WHERE s.words @@ CAST(:tsquery AS tsquery) AND s.hidden = 0
      AND (CAST(:kind AS text) IS NULL OR s.kind = :kind)
      AND (CAST(:namespace AS text) IS NULL OR s.namespace = :namespace)
)
SELECT whole.total, page.kind, page.namespace, page.name, page.updated_at
FROM (
    SELECT COUNT(*) AS total FROM matches WHERE updated_at >= :after AND updated_at < :before
) whole
LEFT JOIN (
    SELECT kind, namespace, name, updated_at FROM matches
    WHERE updated_at >= :after AND updated_at < :before
    ORDER BY CASE WHEN CAST(:sort AS text) = 'UPDATE_AT' THEN updated_at END DESC,
             name, namespace, kind
    LIMIT :limit OFFSET :offset
) page ON true
ORDER BY CASE WHEN CAST(:sort AS text) = 'UPDATE_AT' THEN page.updated_at END DESC,
         page.name, page.namespace, page.kind
