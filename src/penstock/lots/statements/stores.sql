-- The folders that are initialized as object stores.

-- name: store_begun_at
-- Find when a folder was initialized as a store.
SELECT begun_at FROM stores WHERE url = :url;

-- name: begin_store
-- Record that a folder has its mark.
INSERT INTO stores (url, begun_at) VALUES (:url, :now) ON CONFLICT (url) DO NOTHING;
