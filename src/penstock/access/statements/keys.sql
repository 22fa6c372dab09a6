-- API keys are found by digest: the token itself is not stored.

-- name: key_by_digest
-- Find the live key with this digest of its token.
SELECT id, name, role, namespace, digest, requests_per_second, bytes_per_second
FROM api_keys
WHERE digest = :digest AND revoked_at IS NULL

-- name: key_by_name
-- Find the live key with this name.
SELECT id, name, role, namespace, created_at, revoked_at, requests_per_second, bytes_per_second
FROM api_keys
WHERE name = :name AND revoked_at IS NULL

-- name: keys_live
-- List the live keys, by name.
SELECT id, name, role, namespace, created_at, revoked_at, requests_per_second, bytes_per_second
FROM api_keys
WHERE revoked_at IS NULL
ORDER BY name

-- name: keys_all
-- List all keys, also revoked ones, by name and then by age.
SELECT id, name, role, namespace, created_at, revoked_at, requests_per_second, bytes_per_second
FROM api_keys
ORDER BY name, created_at, id

-- name: keys_were_made
-- Return one row if a key was ever created.
SELECT 1 FROM api_keys LIMIT 1

-- name: add_key
-- Add a key; no live key may have its name.
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
-- Revoke a key; its row stays for the record.
UPDATE api_keys SET revoked_at = :at WHERE id = :id AND revoked_at IS NULL
