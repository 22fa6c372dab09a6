-- Parts of names become words of the index of search, as catalog/search.py makes them for what is
-- written from now on. Letters of other scripts follow when a dataset or job is next described.
WITH RECURSIVE tails (id, rest, tail) AS (
    SELECT id, lower(name), CAST('' AS text) FROM search_docs
    UNION ALL
    SELECT dataset_id, lower(name), CAST('' AS text) FROM dataset_aliases
    UNION ALL
    SELECT id, left(rest, -1),
           CASE WHEN right(rest, 1) ~ '[a-z0-9]' THEN right(rest, 1) || substr(tail, 1, 62)
                ELSE '' END
    FROM tails WHERE rest <> ''
),
parts (id, part) AS (
    SELECT id, '3' || tail FROM tails WHERE length(tail) >= 3
    UNION
    SELECT id, '2' || substr(tail, 1, 2) FROM tails WHERE length(tail) >= 2
    UNION
    SELECT id, '1' || substr(tail, 1, 1) FROM tails WHERE tail <> ''
)
UPDATE search_docs
SET words = search_docs.words || array_to_tsvector(found.words)
FROM (SELECT id, array_agg(part) AS words FROM parts GROUP BY id) AS found
WHERE search_docs.id = found.id;
