-- The folders that are object stores of ours.

-- name: store_begun_at
-- When a folder was begun as a store.
SELECT begun_at FROM stores WHERE url = :url;

-- name: begin_store
-- Remember that a folder has its mark.
INSERT INTO stores (url, begun_at) VALUES (:url, :now) ON CONFLICT (url) DO NOTHING;
