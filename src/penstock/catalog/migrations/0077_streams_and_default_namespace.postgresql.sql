-- Marquez' clients expect a namespace of this name in a new catalog.
INSERT INTO namespaces (name, owner_name, description, created_at, updated_at)
SELECT 'default', 'anonymous', 'For what is not in a namespace of its own', t.at, t.at
FROM (SELECT CAST(extract(epoch FROM now()) * 1000000 AS bigint) AS at) t
WHERE true
ON CONFLICT (name) DO NOTHING;
