-- name: search_page
-- Differs by necessity: PostgreSQL finds words in a tsvector with a GIN index.
-- A page of the visible datasets and jobs that have the words, each row with how many there are
-- in all; one row without a name when the page is empty. OFFSET 0 keeps the lookups by id: the
-- planner takes every prefix for common, and would read both tables whole for one match.
WITH docs AS MATERIALIZED (
    SELECT s.id, s.kind FROM search_docs s
    WHERE s.words @@ CAST(:tsquery AS tsquery)
      AND s.kind IN (SELECT k.value FROM {each kinds text AS k})
), hits AS (
    SELECT s.kind, d.namespace, d.name, d.updated_at
    FROM docs s CROSS JOIN LATERAL (
        SELECT namespace, name, updated_at FROM datasets WHERE id = s.id AND hidden = 0 OFFSET 0
    ) d
    WHERE s.kind = 'DATASET'
    UNION ALL
    SELECT s.kind, j.namespace, j.name, j.updated_at
    FROM docs s CROSS JOIN LATERAL (
        SELECT namespace, name, updated_at FROM jobs WHERE id = s.id AND hidden = 0 OFFSET 0
    ) j
    WHERE s.kind = 'JOB'
), found AS MATERIALIZED (
    SELECT kind, namespace, name, updated_at FROM hits
    WHERE (CAST(:namespace AS text) IS NULL OR namespace = :namespace)
      AND updated_at >= :after AND updated_at < :before
)
SELECT whole.total, page.kind, page.namespace, page.name, page.updated_at
FROM (SELECT COUNT(*) AS total FROM found) whole
LEFT JOIN (
    SELECT kind, namespace, name, updated_at FROM found
    ORDER BY CASE WHEN CAST(:sort AS text) = 'UPDATE_AT' THEN updated_at END DESC,
             name, namespace, kind
    LIMIT :limit OFFSET :offset
) page ON true
ORDER BY CASE WHEN CAST(:sort AS text) = 'UPDATE_AT' THEN page.updated_at END DESC,
         page.name, page.namespace, page.kind
