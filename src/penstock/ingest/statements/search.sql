-- The texts that find deposits.

-- name: add_search_keys
-- Write the texts that find a deposit. The depositor of a batch is written once.
{insert search_keys}
ON CONFLICT DO NOTHING;

-- name: search_keys
-- List the keys of a namespace from one text to another, in their order.
SELECT {columns search_keys k}
FROM search_keys k
WHERE k.namespace = :namespace AND k.key >= :first AND k.key <= :last
ORDER BY k.key LIMIT :limit;

-- name: namespaces_of_search_keys
-- Find the namespaces with keys, by one step through the index for each.
WITH RECURSIVE each_namespace (name) AS (
    SELECT MIN(k.namespace) FROM search_keys k
    UNION ALL
    SELECT (SELECT MIN(k.namespace) FROM search_keys k WHERE k.namespace > e.name)
    FROM each_namespace e WHERE e.name IS NOT NULL
)
SELECT e.name FROM each_namespace e WHERE e.name IS NOT NULL;
