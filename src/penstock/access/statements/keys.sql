-- Keys are found by digest: the token itself is stored nowhere.

-- name: key_by_digest
-- The live key that a token's digest belongs to.
SELECT id, name, role, namespace, digest, requests_per_second, bytes_per_second
FROM api_keys
WHERE digest = :digest AND revoked_at IS NULL

-- name: key_by_name
-- The live key of this name.
SELECT id, name, role, namespace, created_at, revoked_at, requests_per_second, bytes_per_second
FROM api_keys
WHERE name = :name AND revoked_at IS NULL

-- name: keys_live
-- Every key that works, by name.
SELECT id, name, role, namespace, created_at, revoked_at, requests_per_second, bytes_per_second
FROM api_keys
WHERE revoked_at IS NULL
ORDER BY name

-- name: keys_all
-- Every key there ever was, by name and then by age.
SELECT id, name, role, namespace, created_at, revoked_at, requests_per_second, bytes_per_second
FROM api_keys
ORDER BY name, created_at, id

-- name: keys_were_made
-- One row if any key was ever made.
SELECT 1 FROM api_keys LIMIT 1

-- name: add_key
-- Keep a new key; its name must be free among the live ones.
INSERT INTO api_keys
    (id, name, role, namespace, digest, created_at, requests_per_second, bytes_per_second)
VALUES
    (:id, :name, :role, :namespace, :digest, :created_at, :requests_per_second, :bytes_per_second)

-- name: limit_key
-- Set the rates of a live key.
UPDATE api_keys
SET requests_per_second = :requests_per_second, bytes_per_second = :bytes_per_second
WHERE id = :id AND revoked_at IS NULL

-- name: revoke_key
-- Let a key work no more; its row stays for the record.
UPDATE api_keys SET revoked_at = :at WHERE id = :id AND revoked_at IS NULL
