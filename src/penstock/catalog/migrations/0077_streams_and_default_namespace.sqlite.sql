-- Marquez' clients expect a namespace of this name in a new catalog.
INSERT INTO namespaces (name, owner_name, description, created_at, updated_at)
SELECT 'default', 'anonymous', 'For what is not in a namespace of its own', t.at, t.at
FROM (SELECT CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER) AS at) t
WHERE true
ON CONFLICT (name) DO NOTHING;
