-- The texts by which deposits are found.

-- name: add_search_keys
-- Write texts by which a deposit is found. The depositor of a batch is written once.
INSERT INTO search_keys (namespace, key, kind, name, collection, reference, version)
{rows namespace text, key text, kind text, name text, collection text, reference text, version bigint}
ON CONFLICT DO NOTHING;

-- name: search_keys
-- The keys of a namespace from one text to another, in their order.
SELECT k.namespace, k.key, k.kind, k.name, k.collection, k.reference, k.version
FROM search_keys k
WHERE k.namespace = :namespace AND k.key >= :first AND k.key <= :last
ORDER BY k.key LIMIT :limit;

-- name: namespaces_of_search_keys
-- The namespaces that have keys, found by one step through the index for each.
WITH RECURSIVE each_namespace (name) AS (
    SELECT MIN(k.namespace) FROM search_keys k
    UNION ALL
    SELECT (SELECT MIN(k.namespace) FROM search_keys k WHERE k.namespace > e.name)
    FROM each_namespace e WHERE e.name IS NOT NULL
)
SELECT e.name FROM each_namespace e WHERE e.name IS NOT NULL;
